import { randomToken } from '../../platform/ids.js';

/** The content of an access token's `jti`: its session, and its time more finely than `iat` can say. */
export interface TokenId {
  /** Null for a token that no session stands behind. */
  session: string | null;
  issuedMs: number;
}

const FORM = /^([0-9a-f-]{36}|-)\.([0-9a-z]{1,11})\.[A-Za-z0-9_-]+$/;

/**
 * A fresh `jti`. `iat` counts whole seconds; a token made in the same second as a cutoff must still be told from one
 * made before it.
 */
export function formatTokenId({ session, issuedMs }: TokenId): string {
  return `${session ?? '-'}.${issuedMs.toString(36)}.${randomToken(6)}`;
}

/** The parts of a `jti`, or null for text in another form. */
export function parseTokenId(text: unknown): TokenId | null {
  const match = typeof text === 'string' ? FORM.exec(text) : null;
  if (!match) return null;
  return { session: match[1] === '-' ? null : match[1]!, issuedMs: Number.parseInt(match[2]!, 36) };
}
