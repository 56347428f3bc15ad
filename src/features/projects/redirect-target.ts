const MAX_TEXT = 500;

const LOOPBACK: ReadonlySet<string> = new Set(['localhost', '127.0.0.1', '[::1]']);

/** Addresses that can stand in a `Location` header as they are; a fragment would swallow the appended query. */
const PLAIN = /^[\x21\x22\x24-\x7e]*$/;

/** https anywhere; http only where nothing leaves the machine. */
export function isSafeWebAddress(text: string): boolean {
  if (!URL.canParse(text) || text.length > MAX_TEXT || !PLAIN.test(text)) return false;
  const url = new URL(text);
  if (url.username || url.password) return false;
  return url.protocol === 'https:' || (url.protocol === 'http:' && LOOPBACK.has(url.hostname));
}

/**
 * Schemes that a browser runs or opens by itself; any other that is not of the web belongs to an app, with one slash
 * (RFC 8252 7.1) or two.
 */
const OWN_SCHEME = /^(?!(?:javascript|data|file|blob|vbscript|about|https?|ftp|wss?):)[a-z][a-z0-9+.-]*:\//;

/** True if people may be sent to an address: https, http on this machine, or an app’s own scheme; no fragment. */
export function isRedirectTarget(text: string): boolean {
  return text.length <= MAX_TEXT && PLAIN.test(text) && (isSafeWebAddress(text) || OWN_SCHEME.test(text));
}
