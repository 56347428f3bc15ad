import type { Server } from 'node:http';
import type { Socket } from 'node:net';
import type { Middleware } from 'koa';
import { unavailable } from '../errors.js';
import { clientNetwork, WIDER_TIMES, widerNetwork } from './requests/client-address.js';
import { readdirSync, readFileSync } from 'node:fs';

const NETWORK = Symbol('network');
const SURPLUS = Symbol('surplus');
type CountedSocket = Socket & { [NETWORK]?: string; [SURPLUS]?: true };

/** The most connections at once; null: any number. */
export interface ConnectionBounds {
  ofAddress: number | null;
  /** A quarter more are let in to be answered 503, see `rejectSurplus`. */
  ofAll: number | null;
  onRejection?: (scope: 'address' | 'all') => void;
}

/**
 * Closes connections beyond the bounds at once, before anything is read from them, and marks the few that are let in to
 * be refused.
 */
export function boundConnections(server: Server, { ofAddress, ofAll, onRejection }: ConnectionBounds): void {
  const most = { address: ofAddress ?? Infinity, all: ofAll ?? Infinity };
  const mostHeard = most.all + Math.ceil(most.all / 4);
  const open = new Map<string, number>();
  let total = 0;
  // One listener for all connections: each holds as little as can be.
  const leave = function (this: CountedSocket): void {
    change(this[NETWORK]!, -1);
    total--;
  };
  const change = (network: string, by: number): void => {
    for (const counted of [network, widerNetwork(network)]) {
      if (counted === null) continue;
      const count = (open.get(counted) ?? 0) + by;
      if (count === 0) open.delete(counted);
      else open.set(counted, count);
    }
  };
  const isBeyond = (network: string): boolean => {
    const wider = widerNetwork(network);
    if (wider !== null && (open.get(wider) ?? 0) >= most.address * WIDER_TIMES) return true;
    return (open.get(network) ?? 0) >= most.address;
  };
  server.prependListener('connection', (socket: CountedSocket) => {
    const network = clientNetwork(socket.remoteAddress ?? '');
    const scope = isBeyond(network) ? 'address' : total >= most.all ? 'all' : null;
    if (scope !== null) onRejection?.(scope);
    if (scope === 'address' || total >= mostHeard) {
      socket.destroy();
      return;
    }
    if (scope === 'all') socket[SURPLUS] = true;
    socket[NETWORK] = network;
    change(network, 1);
    total++;
    socket.on('close', leave);
  });
}

/**
 * Answers 503 OVERLOADED to what comes on a connection beyond `ofAll`, and closes it; paths below those of `except` are
 * answered all the same.
 */
export function rejectSurplus({ except }: { except: readonly string[] }): Middleware {
  return (ctx, next) => {
    if ((ctx.req.socket as CountedSocket)[SURPLUS] !== true) return next() as Promise<unknown>;
    ctx.res.shouldKeepAlive = false;
    if (except.some((path) => ctx.path === path || ctx.path.startsWith(`${path}/`))) return next() as Promise<unknown>;
    throw unavailable('OVERLOADED', 'Too many open connections. Try again.', {
      retryAfterSeconds: 1,
    });
  };
}

/** Of what may still be opened, the part for files, reader threads and requests to others. */
const KEPT_SHARE = 1 / 4;
const LEAST_KEPT = 16;
const MOST_KEPT = 1024;
const LEAST_CONNECTIONS = 8;

/**
 * The connections that this process may have, so that descriptors for its files are left (`ulimit -n`); null where the
 * system does not say how many there are. Throws when there are too few to serve.
 */
export function connectionRoom(): number | null {
  const descriptors = countDescriptors();
  if (!descriptors) return null;
  const { limit, open } = descriptors;
  const kept = Math.min(MOST_KEPT, Math.max(LEAST_KEPT, Math.ceil((limit - open) * KEPT_SHARE)));
  const room = limit - open - kept;
  // A few more are accepted to be sent the error.
  const connections = Math.floor((room * 4) / 5);
  if (connections >= LEAST_CONNECTIONS) return connections;
  const wanted = open + LEAST_KEPT + Math.ceil((LEAST_CONNECTIONS * 5) / 4);
  throw unavailable(
    'TOO_FEW_DESCRIPTORS',
    `This process may open only ${limit} files and connections at once: let it open ${wanted} or more ("ulimit -n").`,
  );
}

function countDescriptors(): { limit: number; open: number } | null {
  try {
    const limit = /^Max open files +(\d+)/m.exec(readFileSync('/proc/self/limits', 'utf8'));
    return limit && { limit: Number(limit[1]), open: readdirSync('/proc/self/fd').length };
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null;
    throw error;
  }
}
