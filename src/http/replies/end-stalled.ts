import type { Server } from 'node:http';
import type { Socket } from 'node:net';

const LOOK_MS = 1_000;

/**
 * Ends connections whose client takes nothing of a reply that waits for it for `stallMs`; one that is taken slowly may
 * go on. Otherwise the server's own timeouts hold, and `endSilent` ends the connection.
 */
export function endStalled(server: Server, stallMs: number, endSilent: (socket: Socket) => void): void {
  const patience = server.timeout > 0 ? Math.min(stallMs, server.timeout) : stallMs;
  const open = new Set<Socket>();
  const waiting = new Set<Socket>();
  // One listener for all connections: each holds as little as can be.
  const forget = function (this: Socket): void {
    open.delete(this);
    waiting.delete(this);
  };
  server.on('connection', (socket: Socket) => {
    open.add(socket);
    socket.on('close', forget);
  });
  const goOn = (socket: Socket): void => {
    if (waiting.delete(socket)) socket.setTimeout(server.timeout);
  };
  server.on('timeout', (socket: Socket) => {
    // It has taken everything in the meantime, which a busy process may not have seen before.
    if (waiting.has(socket) && socket.writableLength === 0) goOn(socket);
    else if (waiting.has(socket)) socket.destroy();
    else endSilent(socket);
  });
  const look = (): void => {
    for (const socket of open) {
      if (socket.writableLength > 0) {
        if (waiting.has(socket)) continue;
        waiting.add(socket);
        // Node starts again as long as the system takes some of what waits.
        socket.setTimeout(patience);
      } else {
        goOn(socket);
      }
    }
  };
  const looking = setInterval(look, Math.min(LOOK_MS, stallMs)).unref();
  server.once('close', () => clearInterval(looking));
}
