/** Whether an allowlist admits the value of an `Origin` header; entries are exact origins, exact hosts (any scheme, any port unless named), `*.base` or `*`. */
export function admitsOrigin(allowed: readonly string[], origin: string): boolean {
  if (allowed.includes('*')) return true;
  if (!URL.canParse(origin)) return false;
  const url = new URL(origin);
  return allowed.some((entry) => {
    if (entry.includes('://')) return entry === url.origin.toLowerCase();
    if (entry.startsWith('*.')) return url.hostname.endsWith(entry.slice(1));
    return entry === url.host || entry === url.hostname;
  });
}
