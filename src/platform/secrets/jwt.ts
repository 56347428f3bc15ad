import { isSameSecret, randomToken } from '../ids.js';
import type { SecretBox } from './secret-box.js';
import { createPrivateKey, createPublicKey, createSecretKey, generateKeyPairSync, type KeyObject } from 'node:crypto';
import type jsonwebtoken from 'jsonwebtoken';
import { CLOCKS_DIFFER_MS } from '../time/clock.js';
import { lazyRequire } from '../lazy-require.js';

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

const jwt = lazyRequire<typeof jsonwebtoken>('jsonwebtoken');

export const TOKEN_ALGORITHMS = ['HS256', 'ES256'] as const;
export type TokenAlgorithm = (typeof TOKEN_ALGORITHMS)[number];

/**
 * A key for signing and checking, prepared once: preparing it for each token would cost forty times the check. The
 * algorithm belongs to the key: what a token says of it is never believed.
 */
export interface TokenKey {
  algorithm: TokenAlgorithm;
  signing: KeyObject;
  checking: KeyObject;
}

const SECRET_BYTES = 48;

/** A new secret as text: random bytes for HS256, a private key (PKCS #8) for ES256; both in base64url. */
export function generateTokenKey(algorithm: TokenAlgorithm): string {
  if (algorithm === 'HS256') return randomToken(SECRET_BYTES);
  const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  return privateKey.export({ type: 'pkcs8', format: 'der' }).toString('base64url');
}

export function prepareTokenKey(secret: string, algorithm: TokenAlgorithm): TokenKey {
  const bytes = Buffer.from(secret, 'base64url');
  if (algorithm === 'ES256') {
    const signing = createPrivateKey({ key: bytes, type: 'pkcs8', format: 'der' });
    return { algorithm, signing, checking: createPublicKey(signing) };
  }
  if (bytes.length < 32) throw new Error('a token secret needs at least 32 bytes');
  const key = createSecretKey(bytes);
  return { algorithm, signing: key, checking: key };
}

export interface TokenClaims {
  sub: string;
  userId: string;
  projectId: string;
  iat: number;
  exp: number;
  jti: string;
  /** How the user proved to be the user (RFC 8176), and when last, in seconds. */
  amr?: string[];
  auth_time?: number;
}

/** Claims of another purpose, signed with ES256. */
export function signClaims(claims: Record<string, unknown>, kid: string, key: KeyObject): string {
  return jwt().sign(claims, key, { algorithm: 'ES256', keyid: kid });
}

/** `claims` carry their own `iat` and `exp` in seconds. */
export function signToken(claims: TokenClaims, kid: string, key: TokenKey): string {
  return jwt().sign(claims, key.signing, { algorithm: key.algorithm, keyid: kid });
}

/**
 * The key id a token names, or null when it is not a token at all, or one that demands what we do not know (`crit`).
 * Nothing is verified.
 */
export function findTokenKid(token: string): string | null {
  const header = findHeader(token);
  return typeof header?.kid === 'string' && header.crit === undefined ? header.kid : null;
}

function findHeader(token: string): jsonwebtoken.JwtHeader | null {
  try {
    const decoded = jwt().decode(token, { complete: true });
    // The library trips over claims that are null when it verifies them, and here over claims that are no JSON.
    return decoded?.payload ? decoded.header : null;
  } catch {
    return null;
  }
}

/** The claims of a good token with an expiry, or why it is not one. `nowMs` is the moment of judgement. */
export function verifyToken(
  token: string,
  key: TokenKey,
  nowMs: number,
): TokenClaims | 'TOKEN_INVALID' | 'TOKEN_EXPIRED' {
  const { verify, TokenExpiredError } = jwt();
  try {
    const claims = verify(token, key.checking, {
      algorithms: [key.algorithm],
      clockTimestamp: Math.floor(nowMs / 1000),
    });
    if (typeof claims === 'string' || !Number.isSafeInteger(claims.exp) || typeof claims.sub !== 'string') {
      return 'TOKEN_INVALID';
    }
    return isOfNow(claims as TokenClaims, nowMs) ? (claims as TokenClaims) : 'TOKEN_EXPIRED';
  } catch (error) {
    // The library throws errors of many classes, depending on which part of the token is malformed.
    return error instanceof TokenExpiredError ? 'TOKEN_EXPIRED' : 'TOKEN_INVALID';
  }
}

/**
 * True if a verified token's time has come and is not over. A token signed while the clock was ahead counts as over:
 * otherwise it would live on until the clock gets there.
 */
export function isOfNow({ iat, exp }: TokenClaims, nowMs: number): boolean {
  return Math.floor(nowMs / 1000) < exp && !(iat * 1000 > nowMs + CLOCKS_DIFFER_MS);
}
