/**
 * True if an allowlist admits the value of an `Origin` header; entries are exact origins, hosts or `*.base` (any
 * scheme, any port unless named), or `*`.
 */
export function admitsOrigin(allowed: readonly string[], origin: string): boolean {
  if (allowed.includes('*')) return true;
  if (!URL.canParse(origin)) return false;
  const url = new URL(origin);
  const port = url.port || (url.protocol === 'https:' ? '443' : '80');
  return allowed.some((entry) => {
    if (entry.includes('://')) return entry === url.origin.toLowerCase();
    const host = /:\d+$/.test(entry) ? `${url.hostname}:${port}` : url.hostname;
    return entry.startsWith('*.') ? host.endsWith(entry.slice(1)) : host === entry;
  });
}
