import type { Socket } from 'node:net';
import type { Context } from 'koa';

const signals = new WeakMap<Socket, AbortSignal>();

/**
 * Aborted when the client closes the connection that the request came over: there is one for all requests of a
 * connection, which come one after the other.
 */
export function clientSignal({ req }: Context): AbortSignal {
  const { socket } = req;
  const known = signals.get(socket);
  if (known) return known;
  const gone = new AbortController();
  if (socket.destroyed) gone.abort();
  else socket.once('close', () => gone.abort());
  signals.set(socket, gone.signal);
  return gone.signal;
}
