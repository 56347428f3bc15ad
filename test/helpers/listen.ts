import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import type { Server as TlsServer } from 'node:https';
import type { AddressInfo } from 'node:net';

export interface Listening {
  url: string;
  /** Ends its connections too. */
  close(): Promise<void>;
}

/** Lets a server listen on this machine, at any free port unless one is given. */
export async function listen(server: Server | TlsServer, port = 0): Promise<Listening> {
  server.listen(port, '127.0.0.1');
  await once(server, 'listening');
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    async close() {
      const closed = once(server, 'close');
      server.close();
      server.closeAllConnections();
      await closed;
    },
  };
}

/** For a process that must know its port before it starts, or keep it through restarts. */
export async function findFreePort(): Promise<number> {
  const { url, close } = await listen(createServer());
  await close();
  return Number(new URL(url).port);
}
