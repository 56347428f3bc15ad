import { lookup, type LookupAddress, type LookupAllOptions, type LookupOneOptions } from 'node:dns';
import { Agent as HttpAgent, type AgentOptions } from 'node:http';
import { Agent as HttpsAgent } from 'node:https';
import { isIP, type NetConnectOpts, type TcpNetConnectOpts } from 'node:net';
import type { Duplex } from 'node:stream';
import { isPublicAddress, PrivateAddressError } from './public-address.js';

type LookupCallback = (error: NodeJS.ErrnoException | null, address: string | LookupAddress[], family?: number) => void;

/**
 * A dns.lookup for `net.connect` that fails when any of a name's addresses is not public, so that the address judged is
 * the address used.
 */
function lookupPublic(host: string, options: LookupOneOptions | LookupAllOptions, done: LookupCallback): void {
  lookup(host, { ...options, all: true }, (error, addresses) => {
    const first = addresses?.[0];
    if (error || !first) return done(error ?? new Error(`${host} has no address`), []);
    if (!addresses.every((entry) => isPublicAddress(entry.address))) return done(new PrivateAddressError(host), []);
    if (options.all) return done(null, addresses);
    return done(null, first.address, first.family);
  });
}

type Connected = (error: Error | null, stream: Duplex) => void;
/** How a callback is called that has no stream to be given. */
type Failed = (error: Error) => void;
type Connect = (options: NetConnectOpts, done?: Connected) => Duplex | null | undefined;

class PublicHttpAgent extends HttpAgent {
  override createConnection(options: NetConnectOpts, done?: Connected): Duplex | null | undefined {
    return connect(super.createConnection.bind(this), options, done);
  }
}

class PublicHttpsAgent extends HttpsAgent {
  override createConnection(options: NetConnectOpts, done?: Connected): Duplex | null | undefined {
    return connect(super.createConnection.bind(this), options, done);
  }
}

function connect(open: Connect, options: NetConnectOpts, done?: Connected): Duplex | null | undefined {
  const { host } = options as TcpNetConnectOpts;
  // net.connect never looks up a literal, so lookupPublic would not see it.
  if (host && isLiteral(host) && !isPublicAddress(host)) {
    // Told through the callback: thrown, it would have no catcher when the agent connects for a queued request.
    (done as Failed | undefined)?.(new PrivateAddressError(host));
    return undefined;
  }
  return open({ ...options, lookup: lookupPublic }, done);
}

function isLiteral(host: string): boolean {
  return isIP(host.replace(/^\[|\]$/g, '')) > 0;
}

export interface Agents {
  httpAgent: HttpAgent;
  httpsAgent: HttpsAgent;
}

/**
 * Connection pools for addresses that projects name; unless `allowPrivate`, they refuse literals and names that are not
 * public, at every connection.
 */
export function openAgents(allowPrivate: boolean, options: AgentOptions): Agents {
  return allowPrivate
    ? { httpAgent: new HttpAgent(options), httpsAgent: new HttpsAgent(options) }
    : { httpAgent: new PublicHttpAgent(options), httpsAgent: new PublicHttpsAgent(options) };
}
