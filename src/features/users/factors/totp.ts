import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto';
import { foldCode } from '../credentials.js';

/** RFC 6238 as authenticator apps expect it: SHA-1, six digits, 30 seconds, a secret of 160 bits. */
const STEP_MS = 30_000;
const DIGITS = 6;
const SECRET_BYTES = 20;
const ALPHABET = 'ABCDEFGHIJKLMNOPQRSTUVWXYZ234567';

/** A new secret in base32, as apps take it. */
export function generateTotpSecret(): string {
  return toBase32(randomBytes(SECRET_BYTES));
}

/** The address that apps read from a QR code. */
export function totpUri(secret: string, { issuer, account }: { issuer: string; account: string }): string {
  const label = `${encodeURIComponent(issuer)}:${encodeURIComponent(account)}`;
  return `otpauth://totp/${label}?secret=${secret}&issuer=${encodeURIComponent(issuer)}&algorithm=SHA1&digits=${DIGITS}&period=${STEP_MS / 1000}`;
}

/**
 * The step whose code this is, at most one before or after the moment; null when it is none of these. The caller takes
 * a step once.
 */
export function findTotpStep(secret: string, code: string, nowMs: number): number | null {
  const key = fromBase32(secret);
  const present = Math.floor(nowMs / STEP_MS);
  const given = Buffer.from(foldCode(code));
  let found: number | null = null;
  for (const step of [present - 1, present, present + 1]) {
    const wanted = Buffer.from(codeOfStep(key, step));
    if (given.length === wanted.length && timingSafeEqual(given, wanted)) found = step;
  }
  return found;
}

/** The code that an app shows at a moment. */
export function totpCode(secret: string, nowMs: number): string {
  return codeOfStep(fromBase32(secret), Math.floor(nowMs / STEP_MS));
}

function codeOfStep(key: Buffer, step: number): string {
  const counter = Buffer.alloc(8);
  counter.writeBigUInt64BE(BigInt(step));
  const digest = createHmac('sha1', key).update(counter).digest();
  const offset = digest.at(-1)! & 0xf;
  const number = (digest.readUInt32BE(offset) & 0x7fff_ffff) % 10 ** DIGITS;
  return String(number).padStart(DIGITS, '0');
}

/** Base32 (RFC 4648) of bytes whose number is a multiple of five. */
export function toBase32(bytes: Buffer): string {
  const bits = [...bytes].map((byte) => byte.toString(2).padStart(8, '0')).join('');
  return bits.replace(/.{5}/g, (five) => ALPHABET[Number.parseInt(five, 2)]!);
}

function fromBase32(text: string): Buffer {
  const bits = [...text].map((character) => ALPHABET.indexOf(character).toString(2).padStart(5, '0')).join('');
  return Buffer.from(bits.match(/.{8}/g)!.map((byte) => Number.parseInt(byte, 2)));
}
