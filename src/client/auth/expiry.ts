const EXPIRING_MS = 30_000;

/** The claims of a token as far as they are used here; none when it cannot be read. */
function claimsOf(token: string): { exp?: number; iat?: number } {
  try {
    return JSON.parse(atob(token.split('.')[1]!.replace(/-/g, '+').replace(/_/g, '/'))) as object;
  } catch {
    return {};
  }
}

/** The moment at which a token says that it expires; null when it cannot be read. */
export function expiryOf(token: string): number | null {
  const { exp } = claimsOf(token);
  return typeof exp === 'number' ? exp * 1000 : null;
}

/**
 * True if a token will expire within half a minute, or cannot be read. Its age by the clock here is compared with its
 * lifetime by the clock of the service, so that neither clock has to be right.
 */
export function isExpiring({ accessToken, at }: { accessToken: string; at?: number }): boolean {
  const { exp, iat } = claimsOf(accessToken);
  const ageMs = Date.now() - at!;
  return !(ageMs >= 0 && ageMs + EXPIRING_MS < (exp! - iat!) * 1000);
}
