import { hash, randomBytes } from 'node:crypto';
import { ObjectId } from 'bson';

const OBJECT_ID_TEXT = /^[0-9a-fA-F]{24}$/;

/** The identifier that 24 hexadecimal digits name, or null for any other text. */
export function findObjectId(text: string): ObjectId | null {
  return OBJECT_ID_TEXT.test(text) ? new ObjectId(text) : null;
}

/** `bytes` random bytes as unpadded base64url text. */
export function randomToken(bytes: number): string {
  return randomBytes(bytes).toString('base64url');
}

/** SHA-256 as 64 hexadecimal digits. */
export function sha256Hex(text: string): string {
  return hash('sha256', text, 'hex');
}
