export const MASK = '********';

/** The address of a receiver without its path and query, either of which may hold a token. */
export function maskAddress(address: string): string {
  if (!URL.canParse(address)) return MASK;
  const { origin, protocol, pathname, search } = new URL(address);
  // A handler in a file of the project.
  if (protocol === 'run:') return address;
  return pathname === '/' && search === '' ? origin : `${origin}/${MASK}`;
}

/** A text with the user names and passwords of its addresses masked, `https://ann:pw@host` for one. */
export function maskCredentials(text: string): string {
  return text.replace(/:\/\/[^/\\?#\s]*@/g, `://${MASK}@`);
}
