import { randomBytes, timingSafeEqual } from 'node:crypto';
import { sha256Hex } from '../../../platform/ids.js';
import type { SecretBox } from '../../../platform/secrets/secret-box.js';

/**
 * A refresh token `<session uuid>.<64 hex>`. The digits are 16 random bytes and 16 bytes of a keyed hash over session
 * and random part, so that an invented token is distinguished from one that was once given out without keeping a list
 * of those.
 */
export interface RefreshToken {
  session: string;
  secret: string;
}

type Mac = Pick<SecretBox, 'mac' | 'macs'>;

const FORM = /^([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})\.([0-9a-f]{64})$/;
const RANDOM_BYTES = 16;
const RANDOM_DIGITS = RANDOM_BYTES * 2;

export function parseRefreshToken(text: string): RefreshToken | null {
  const match = FORM.exec(text);
  return match ? { session: match[1]!, secret: match[2]! } : null;
}

export function formatRefreshToken({ session, secret }: RefreshToken): string {
  return `${session}.${secret}`;
}

/** The stored form of a token. */
export function hashRefreshToken(token: RefreshToken): string {
  return sha256Hex(formatRefreshToken(token));
}

/** The first token of a session. */
export function generateRefreshToken(box: Mac, session: string): RefreshToken {
  return sign(box.mac.bind(box), session, randomBytes(RANDOM_BYTES).toString('hex'));
}

/** The token that follows: always the same one, so that it can be given again without being stored. */
export function deriveSuccessor(box: Mac, token: RefreshToken): RefreshToken {
  return follow(box.mac.bind(box), token);
}

/**
 * The successor whose hash is `hash`, made with whichever master key was the newest at the time; null when that key is
 * gone.
 */
export function findSuccessor(box: Mac, token: RefreshToken, hash: string): RefreshToken | null {
  const count = box.macs('', '').length;
  for (let index = 0; index < count; index++) {
    const successor = follow((purpose, text) => box.macs(purpose, text)[index]!, token);
    if (hashRefreshToken(successor) === hash) return successor;
  }
  return null;
}

/** True if we ever gave out the token for its session. */
export function isGenuine(box: Mac, { session, secret }: RefreshToken): boolean {
  const random = secret.slice(0, RANDOM_DIGITS);
  const given = Buffer.from(secret.slice(RANDOM_DIGITS), 'hex');
  return box.macs('refresh-token', `${session}.${random}`).some((mac) => timingSafeEqual(half(mac), given));
}

type KeyedHash = (purpose: string, text: string) => string;

function follow(mac: KeyedHash, token: RefreshToken): RefreshToken {
  const random = half(mac('refresh-successor', formatRefreshToken(token))).toString('hex');
  return sign(mac, token.session, random);
}

function sign(mac: KeyedHash, session: string, random: string): RefreshToken {
  return { session, secret: random + half(mac('refresh-token', `${session}.${random}`)).toString('hex') };
}

function half(mac: string): Buffer {
  return Buffer.from(mac, 'base64url').subarray(0, RANDOM_BYTES);
}
