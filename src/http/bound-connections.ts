import type { Server } from 'node:http';
import type { Socket } from 'node:net';
import { clientNetwork } from './requests/client-address.js';

const NETWORK = Symbol('network');
type CountedSocket = Socket & { [NETWORK]?: string };

export interface ConnectionBound {
  /** Connections of one address at once. */
  most: number;
  onRefusal?: () => void;
}

/** Closes connections of an address beyond its share at once, before anything is read from them. */
export function boundConnections(server: Server, { most, onRefusal }: ConnectionBound): void {
  const open = new Map<string, number>();
  // One listener for all connections: each holds as little as can be.
  const leave = function (this: CountedSocket): void {
    const network = this[NETWORK]!;
    const left = open.get(network)! - 1;
    if (left === 0) open.delete(network);
    else open.set(network, left);
  };
  server.prependListener('connection', (socket: CountedSocket) => {
    const network = clientNetwork(socket.remoteAddress ?? '');
    const count = (open.get(network) ?? 0) + 1;
    if (count > most) {
      socket.destroy();
      onRefusal?.();
      return;
    }
    socket[NETWORK] = network;
    open.set(network, count);
    socket.on('close', leave);
  });
}
