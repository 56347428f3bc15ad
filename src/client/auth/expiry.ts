const EXPIRING_MS = 30_000;

/** The moment at which a token says that it expires; null when it cannot be read. */
export function expiryOf(token: string): number | null {
  try {
    const claims = JSON.parse(atob(token.split('.')[1]!.replace(/-/g, '+').replace(/_/g, '/'))) as { exp?: unknown };
    return typeof claims.exp === 'number' ? claims.exp * 1000 : null;
  } catch {
    return null;
  }
}

/** True if a token will expire within half a minute by the clock here, or cannot be read. */
export function isExpiring(token: string): boolean {
  const expiresMs = expiryOf(token);
  return expiresMs === null || expiresMs < Date.now() + EXPIRING_MS;
}
