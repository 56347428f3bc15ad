import type { Socket } from 'node:net';
import type { Context } from 'koa';
import { invalid } from '../../errors.js';

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
  const abort = (): void => gone.abort(invalid('CLIENT_GONE', 'Nobody waits for the answer any more'));
  if (socket.destroyed) abort();
  else socket.once('close', abort);
  signals.set(socket, gone.signal);
  return gone.signal;
}
