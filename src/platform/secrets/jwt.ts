import { createSecretKey, type KeyObject } from 'node:crypto';
import type jsonwebtoken from 'jsonwebtoken';
import { CLOCKS_DIFFER_MS } from '../time/clock.js';
import { lazyRequire } from '../lazy-require.js';

const jwt = lazyRequire<typeof jsonwebtoken>('jsonwebtoken');

/** A key for signing and checking, prepared once: preparing it for each token would cost forty times the check. */
export type TokenKey = KeyObject;

export function prepareTokenKey(secret: string): TokenKey {
  const bytes = Buffer.from(secret, 'base64url');
  if (bytes.length < 32) throw new Error('a token secret needs at least 32 bytes');
  return createSecretKey(bytes);
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

/** Signs with HS256; `claims` carry their own `iat` and `exp` in seconds. */
export function signToken(claims: TokenClaims, kid: string, key: TokenKey): string {
  return jwt().sign(claims, key, { algorithm: 'HS256', keyid: kid });
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

/** The claims of a good HS256 token with an expiry, or why it is not one. `nowMs` is the moment of judgement. */
export function verifyToken(
  token: string,
  key: TokenKey,
  nowMs: number,
): TokenClaims | 'TOKEN_INVALID' | 'TOKEN_EXPIRED' {
  const { verify, JsonWebTokenError, TokenExpiredError } = jwt();
  try {
    const claims = verify(token, key, { algorithms: ['HS256'], clockTimestamp: Math.floor(nowMs / 1000) });
    if (typeof claims === 'string' || !Number.isSafeInteger(claims.exp) || typeof claims.sub !== 'string') {
      return 'TOKEN_INVALID';
    }
    return isOfNow(claims as TokenClaims, nowMs) ? (claims as TokenClaims) : 'TOKEN_EXPIRED';
  } catch (error) {
    if (error instanceof TokenExpiredError) return 'TOKEN_EXPIRED';
    if (error instanceof JsonWebTokenError || error instanceof SyntaxError) return 'TOKEN_INVALID';
    throw error;
  }
}

/**
 * True if a verified token's time has come and is not over. A token signed while the clock was ahead counts as over:
 * otherwise it would live on until the clock gets there.
 */
export function isOfNow({ iat, exp }: TokenClaims, nowMs: number): boolean {
  return Math.floor(nowMs / 1000) < exp && !(iat * 1000 > nowMs + CLOCKS_DIFFER_MS);
}
