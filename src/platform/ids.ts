import { hash, randomBytes, createHash, timingSafeEqual } from 'node:crypto';
import { ObjectId } from 'bson';

const OBJECT_ID_TEXT = /^[0-9a-fA-F]{24}$/;

/** The identifier that 24 hexadecimal digits name, or null for any other text. */
export function findObjectId(text: string): ObjectId | null {
  return OBJECT_ID_TEXT.test(text) ? new ObjectId(text) : null;
}

/** True for an identifier, of whichever copy of the driver's library it is; for nothing that JSON can say. */
export function isObjectId(value: unknown): value is ObjectId {
  const { _bsontype, toHexString } = Object(value) as { _bsontype?: unknown; toHexString?: unknown };
  return _bsontype === 'ObjectId' && typeof toHexString === 'function';
}

/** `bytes` random bytes as unpadded base64url text. */
export function randomToken(bytes: number): string {
  return randomBytes(bytes).toString('base64url');
}

/** SHA-256 as 64 hexadecimal digits. */
export function sha256Hex(text: string): string {
  return hash('sha256', text, 'hex');
}

const known = new WeakMap<ObjectId, string>();

/** The text of an id that many requests ask for, such as that of a project: made once for each object. */
export function hexOf(id: ObjectId): string {
  let hex = known.get(id);
  if (hex === undefined) known.set(id, (hex = id.toHexString()));
  return hex;
}

/** Compares hashes, so that the time shows neither content nor length. */
export function isSameSecret(a: string, b: string): boolean {
  const hash = (text: string): Buffer => createHash('sha256').update(text).digest();
  return timingSafeEqual(hash(a), hash(b));
}
