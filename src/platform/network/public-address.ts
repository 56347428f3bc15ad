import { lookup } from 'node:dns/promises';
import { isIP } from 'node:net';
import ipaddr from 'ipaddr.js';

/**
 * A connection was refused by us because the target is loopback, private, link-local or otherwise not on the public
 * internet.
 */
export class PrivateAddressError extends Error {
  readonly code = 'PRIVATE_ADDRESS';
  constructor(target: string) {
    super(`${target} is not a public address`);
    this.name = 'PrivateAddressError';
  }
}

/**
 * Services of a cloud to its own machines at addresses that look public: the host of every machine at Azure, the
 * service networks at IBM. Those of the others (169.254.0.0/16, 100.64.0.0/10, 192.0.0.0/24, fc00::/7) are of no public
 * range.
 */
const HOST_SERVICES = ['168.63.129.16/32', '161.26.0.0/16', '166.8.0.0/14'].map((range) => ipaddr.parseCIDR(range));

/**
 * True if an IP literal is on the public internet; IPv6 forms that carry an IPv4 address are judged by it or refused
 * (decisions.md 8).
 */
export function isPublicAddress(address: string): boolean {
  const bare = address.replace(/^\[|\]$/g, '').replace(/%.*$/, '');
  if (!ipaddr.isValid(bare)) return false;
  const parsed = ipaddr.process(bare);
  if (parsed.range() !== 'unicast' || HOST_SERVICES.some((range) => isWithin(parsed, range))) return false;
  return !(parsed instanceof ipaddr.IPv6) || (isGlobalUnicast(parsed.parts) && !isIsatap(parsed.parts));
}

function isWithin(address: ipaddr.IPv4 | ipaddr.IPv6, range: [ipaddr.IPv4 | ipaddr.IPv6, number]): boolean {
  return address.kind() === range[0].kind() && address.match(range);
}

/** All public IPv6 addresses are in 2000::/3; what lies outside is old, special or a form of an IPv4 address. */
function isGlobalUnicast(parts: readonly number[]): boolean {
  return (parts[0]! & 0xe000) === 0x2000;
}

/** ISATAP interface identifiers (0000:5efe or 0200:5efe) lead to the IPv4 address in the last 32 bits. */
function isIsatap(parts: readonly number[]): boolean {
  return (parts[4] === 0 || parts[4] === 0x0200) && parts[5] === 0x5efe;
}

/** Names of networks of one's own, and of a cloud's services to its machines. */
const NOT_PUBLIC = /(^|\.)(localhost|local|internal|lan|home\.arpa|localdomain)\.?$/i;
/** Public services that resolve a name to the address in it, in points, dashes or as eight hexadecimal digits. */
const BY_ADDRESS = /^(.*)\.(nip\.io|sslip\.io|xip\.io|traefik\.me|localtest\.me|lvh\.me)\.?$/i;

function carriesPrivate(name: string): boolean {
  const rest = BY_ADDRESS.exec(name)?.[1];
  if (rest === undefined) return false;
  const written = /(?:^|[.-])(\d{1,3}(?:[.-]\d{1,3}){3})$/.exec(rest)?.[1]?.replaceAll('-', '.');
  return written === undefined || !isPublicAddress(written);
}

/** All addresses of a host name; throws when it has none. */
export type Resolve = (hostname: string) => Promise<string[]>;

export const resolveBySystem: Resolve = async (hostname) => {
  const found = await lookup(hostname, { all: true, verbatim: true });
  return found.map(({ address }) => address);
};

/** The addresses of a host as it stands in a URL, all of them public; throws PrivateAddressError when one is not. */
export async function requirePublicAddresses(hostname: string, resolve: Resolve): Promise<string[]> {
  const literal = hostname.replace(/^\[|\]$/g, '');
  // Not every resolver knows these names, and the one that matters is the one asked later.
  if (NOT_PUBLIC.test(literal) || carriesPrivate(literal)) throw new PrivateAddressError(hostname);
  const addresses = isIP(literal) ? [literal] : await resolve(hostname);
  // One bad address among good ones is how a name is made to lead inside, so all of them count.
  if (addresses.length === 0 || !addresses.every(isPublicAddress)) throw new PrivateAddressError(hostname);
  return addresses;
}
