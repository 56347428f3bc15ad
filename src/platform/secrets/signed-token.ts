import { isSameSecret } from './is-same-secret.js';
import type { SecretBox } from './secret-box.js';

/** Longer ones would not fit into a request line everywhere. */
export const MAX_TOKEN_CHARACTERS = 4096;

/** A kind of opaque text that only the service can make. */
export interface TokenForm {
  /** Keeps kinds apart: one is not good for another. */
  purpose: string;
  /** What is signed: the payload with all that it holds for. */
  signed: (payload: string) => string;
}

/** The text as a token. */
export function createSignedToken(
  secrets: Pick<SecretBox, 'mac'>,
  { purpose, signed }: TokenForm,
  text: string,
): string {
  const payload = Buffer.from(text).toString('base64url');
  return `${payload}.${secrets.mac(purpose, signed(payload))}`;
}

/** The text of a token; null for one that is too long or was not made here, for the same. */
export function openToken(
  secrets: Pick<SecretBox, 'macs'>,
  { purpose, signed }: TokenForm,
  token: string,
): string | null {
  const [payload, mac, ...rest] = token.split('.');
  if (!payload || !mac || rest.length > 0 || payload.length > MAX_TOKEN_CHARACTERS) return null;
  const isGenuine = secrets.macs(purpose, signed(payload)).some((expected) => isSameSecret(mac, expected));
  return isGenuine ? Buffer.from(payload, 'base64url').toString('utf8') : null;
}
