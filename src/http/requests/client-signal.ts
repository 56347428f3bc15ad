import type { Socket } from 'node:net';
import type { Context } from 'koa';
import { invalid } from '../../errors.js';
import { setAddress } from '../../scheduler.js';
import { clientNetwork } from './client-address.js';

const signals = new WeakMap<Socket, AbortSignal>();

/**
 * Aborted when the client closes the connection that the request came over: there is one for all requests of a
 * connection, which come one after the other. Work that it ends is counted by the request's address: behind a proxy
 * that of each request is another.
 */
export function clientSignal(ctx: Context): AbortSignal {
  const { socket } = ctx.req;
  let signal = signals.get(socket);
  if (!signal) {
    signal = openSignal(socket);
    signals.set(socket, signal);
  }
  setAddress(signal, clientNetwork(ctx.ip));
  return signal;
}

function openSignal(socket: Socket): AbortSignal {
  const gone = new AbortController();
  const abort = (): void => gone.abort(invalid('CLIENT_GONE', 'The client disconnected'));
  if (socket.destroyed) abort();
  else socket.once('close', abort);
  return gone.signal;
}
