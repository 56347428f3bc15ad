import { once } from 'node:events';
import { connect, createServer, type AddressInfo, type Server, type Socket } from 'node:net';
import { setTimeout as wait } from 'node:timers/promises';

/** A cable between two programs that can be cut, and that can go dead without anybody being told. */
export interface TcpProxy {
  port: number;
  /** Ends all connections and refuses new ones. */
  cut(): Promise<void>;
  /** Connections stay, new ones are taken, and nothing that is sent arrives. */
  swallow(): void;
  /** Lets new connections pass; those that were swallowed end. */
  restore(): Promise<void>;
  close(): Promise<void>;
}

/**
 * Stands at a port of its own, that it keeps, in front of another one of this machine. `delayMs` says of each piece of
 * an answer how long it is on its way; pieces of a connection keep their order.
 */
export async function startTcpProxy(targetPort: number, delayMs: () => number = () => 0): Promise<TcpProxy> {
  const sockets = new Set<Socket>();
  let swallowing = false;
  const keep = (socket: Socket): void => {
    sockets.add(socket);
    socket.on('close', () => sockets.delete(socket)).on('error', () => undefined);
  };
  const serve = (client: Socket): void => {
    keep(client);
    if (swallowing) return void client.resume();
    const target = connect(targetPort, '127.0.0.1');
    keep(target);
    client.on('data', (bytes) => {
      if (!swallowing) target.write(bytes);
    });
    let arriving = Promise.resolve();
    target.on('data', (bytes) => {
      if (swallowing) return;
      const ms = delayMs();
      arriving = arriving.then(() => (ms > 0 ? wait(ms) : undefined)).then(() => void client.write(bytes));
    });
    for (const [from, to] of [
      [client, target],
      [target, client],
    ] as const) {
      from.on('close', () => {
        if (!swallowing) to.destroy();
      });
    }
  };
  const listen = async (port: number): Promise<Server> => {
    const server = createServer(serve).listen(port, '127.0.0.1');
    await once(server, 'listening');
    return server;
  };
  const endAll = (): void => {
    for (const socket of sockets) socket.destroy();
  };
  let server: Server | null = await listen(0);
  const { port } = server.address() as AddressInfo;
  const cut = async (): Promise<void> => {
    const closing = server;
    server = null;
    const closed = closing && once(closing, 'close');
    closing?.close();
    endAll();
    await closed;
  };
  return {
    port,
    cut,
    swallow: () => void (swallowing = true),
    async restore() {
      swallowing = false;
      endAll();
      server ??= await listen(port);
    },
    close: cut,
  };
}
