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

/**
 * Ports above 1023 that belong to services which are not for the web: the Fetch standard's list of bad ports,
 * databases, caches, queues and interfaces for administration.
 */
const SERVICE_PORTS: ReadonlySet<number> = new Set([
  1433, 1434, 1521, 1719, 1720, 1723, 2049, 2181, 2375, 2376, 2379, 2380, 3306, 3389, 3659, 4045, 4190, 5060, 5061,
  5432, 5433, 5672, 5900, 5984, 5985, 5986, 6000, 6379, 6380, 6432, 6566, 6665, 6666, 6667, 6668, 6669, 6679, 6697,
  7000, 7001, 7199, 7474, 7687, 8086, 8500, 8529, 9042, 9092, 9160, 9200, 9300, 10080, 10250, 10255, 11211, 26257,
  27017, 27018, 27019, 28015, 33060, 50000,
]);
const MAX_SYSTEM_PORT = 1023;

/** True for a port at which a public web service may be: 80, 443, and those above 1023 that no other service owns. */
export function isWebPort(port: number): boolean {
  return port === 80 || port === 443 || (port > MAX_SYSTEM_PORT && !SERVICE_PORTS.has(port));
}

/** The port of an address of the web. */
export function portOf({ port, protocol }: Pick<URL, 'port' | 'protocol'>): number {
  return port === '' ? (protocol === 'http:' ? 80 : 443) : Number(port);
}

/** A connection was refused by us because the port of the target belongs to another kind of service. */
export class ServicePortError extends Error {
  readonly code = 'PORT_NOT_ALLOWED';
  constructor(port: number) {
    super(`port ${port} is not one of web services`);
    this.name = 'ServicePortError';
  }
}
