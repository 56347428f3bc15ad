import ipaddr from 'ipaddr.js';
import type { Context } from 'koa';

/**
 * The client's address: the connection's own, or, behind `hops` trusted proxies, the entry of `X-Forwarded-For` that
 * the outermost of them wrote. Entries that a client itself put in front are never read. An entry that is no address
 * counts as the connection's. IPv4 inside IPv6 is written as IPv4.
 */
export function clientAddress(remote: string, forwardedFor: string, hops: number): string {
  if (hops > 0 && forwardedFor !== '') {
    // Each proxy appends the address it was called from, so the last entry is what the nearest one saw.
    const entry = forwardedFor.split(',').slice(-hops)[0]!.trim();
    const address = parseAddress(entry);
    if (address) return address;
  }
  return remote.includes(':') ? (parseAddress(remote) ?? remote) : remote;
}

/**
 * One name for all addresses of a client: IPv6 networks give a client at least a /64, so single addresses of it mean
 * nothing.
 */
export function clientNetwork(address: string): string {
  if (!address.includes(':')) return address;
  const parsed = ipaddr.IPv6.isValid(address) ? ipaddr.IPv6.parse(address) : null;
  if (!parsed) return address;
  if (parsed.isIPv4MappedAddress()) return parsed.toIPv4Address().toString();
  return `${parsed.parts
    .slice(0, 4)
    .map((part) => part.toString(16))
    .join(':')}::/64`;
}

/** What a /48 may have, as a multiple of a /64: some providers give a customer all of one. */
export const WIDER_TIMES = 16;

/** The /48 around an IPv6 network that `clientNetwork` names: some clients are given all of one. Null for IPv4. */
export function widerNetwork(network: string): string | null {
  if (!network.endsWith('::/64')) return null;
  return `${network.split(':', 3).join(':')}::/48`;
}

/**
 * Makes `ctx.ip` the client's address, once and for all who ask. Without trusted proxies `onIgnored` is called once,
 * when a request comes that seems to have passed one.
 */
export function readClientAddress(hops: number, onIgnored: () => void): (ctx: Context) => void {
  let optionOf = hops > 0;
  return (ctx) => {
    const forwardedFor = hops > 0 ? ctx.get('x-forwarded-for') : '';
    ctx.request.ip = clientAddress(ctx.req.socket.remoteAddress ?? '', forwardedFor, hops);
    if (optionOf || ctx.req.headers['x-forwarded-for'] === undefined) return;
    optionOf = true;
    onIgnored();
  };
}

/** Proxies may write ports behind addresses and brackets around IPv6. */
const WITH_PORT = /^(?:\[([0-9a-fA-F:.%\w]+)\](?::\d+)?|(\d{1,3}(?:\.\d{1,3}){3}):\d+)$/;

function parseAddress(text: string): string | null {
  const bare = WITH_PORT.exec(text);
  const address = bare ? (bare[1] ?? bare[2]!) : text;
  if (ipaddr.IPv4.isValidFourPartDecimal(address)) return address;
  if (!ipaddr.IPv6.isValid(address)) return null;
  const parsed = ipaddr.IPv6.parse(address);
  return parsed.isIPv4MappedAddress() ? parsed.toIPv4Address().toString() : address;
}
