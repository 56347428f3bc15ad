import { lstatSync, mkdirSync, unlinkSync } from 'node:fs';
import { connect, createServer, isIP, type AddressInfo, type Server, type Socket } from 'node:net';
import { dirname } from 'node:path';
import type { Core } from '../../commands/command.js';
import { type ReportError, serveConnection } from './connection.js';

/** an open wire listener. */
export interface Listener {
  /** The address to connect to: `mongodb://127.0.0.1:port` or `mongodb://%2Fpath.sock`. */
  readonly uri: string;
  close(): Promise<void>;
}

/** The address cannot be listened on; the message says why. */
export class ListenError extends Error {}

/** Longer paths of unix sockets are silently cut by the system. */
const MAX_SOCKET_PATH_BYTES = 107;
const MAX_CONNECTIONS = 1000;

/**
 * Opens the wire listener on `127.0.0.1:port` (any loopback address) or `unix:/path/name.sock`. There is no
 * authentication: other addresses are refused, and the socket is readable by its owner only.
 */
export async function listen(core: Core, address: string, report: ReportError): Promise<Listener> {
  const sockets = new Set<Socket>();
  const served = new Set<Promise<void>>();
  const server = createServer((socket) => {
    sockets.add(socket);
    const done = serveConnection(core, socket, report).finally(() => {
      sockets.delete(socket);
      served.delete(done);
    });
    served.add(done);
  });
  server.maxConnections = MAX_CONNECTIONS;
  const uri = address.startsWith('unix:')
    ? await listenOnPath(server, address.slice('unix:'.length))
    : await listenOnPort(server, address);
  // A connection that could not be taken (no more files) is no reason to end.
  server.on('error', report);
  return {
    uri,
    async close() {
      const closed = new Promise((resolve) => server.close(resolve));
      for (const socket of sockets) socket.destroy();
      await Promise.all(served);
      await closed;
    },
  };
}

async function listenOnPort(server: Server, address: string): Promise<string> {
  const colon = address.lastIndexOf(':');
  const host = address.slice(0, colon).replace(/^\[|\]$/g, '');
  const port = Number(address.slice(colon + 1));
  if (colon < 1 || !Number.isInteger(port) || port < 0 || port > 65535) {
    throw new ListenError(`'${address}' is no address: write 127.0.0.1:27027 or unix:/path/name.sock`);
  }
  const isLoopback = host === 'localhost' || host === '::1' || (isIP(host) === 4 && host.startsWith('127.'));
  if (!isLoopback) {
    throw new ListenError(`the wire listener has no authentication and listens on loopback only, not on ${host}`);
  }
  await started(server, () => server.listen(port, host));
  const bound = server.address() as AddressInfo;
  return `mongodb://${bound.family === 'IPv6' ? `[${bound.address}]` : bound.address}:${bound.port}`;
}

async function listenOnPath(server: Server, path: string): Promise<string> {
  if (!path.startsWith('/') || !path.endsWith('.sock')) {
    throw new ListenError(`the path of a unix socket must be absolute and end in .sock: ${path}`);
  }
  if (Buffer.byteLength(path) > MAX_SOCKET_PATH_BYTES) {
    throw new ListenError(`the path of a unix socket may have ${MAX_SOCKET_PATH_BYTES} bytes at most: ${path}`);
  }
  await preparePath(path);
  await started(server, () => {
    // From its first moment on nobody but its owner may connect.
    const mask = process.umask(0o177);
    try {
      server.listen(path);
    } finally {
      process.umask(mask);
    }
  });
  return `mongodb://${encodeURIComponent(path)}`;
}

function started(server: Server, begin: () => void): Promise<void> {
  return new Promise((resolve, reject) => {
    const refuse = (error: Error): void => {
      reject(new ListenError(error.message, { cause: error }));
    };
    server.once('error', refuse);
    server.once('listening', () => {
      server.off('error', refuse);
      resolve();
    });
    begin();
  });
}

/**
 * Makes the directory, and removes the socket that a killed process left there; one that somebody answers on is left
 * alone.
 */
async function preparePath(path: string): Promise<void> {
  try {
    mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
    if ((await probe(path)) === 'ECONNREFUSED' && lstatSync(path).isSocket()) unlinkSync(path);
  } catch (error) {
    throw new ListenError((error as Error).message, { cause: error });
  }
}

/** The error code with which a connection is refused, undefined when it is not. */
function probe(path: string): Promise<string | undefined> {
  return new Promise((resolve) => {
    const socket = connect(path);
    socket.once('connect', () => {
      socket.destroy();
      resolve(undefined);
    });
    socket.once('error', (error: NodeJS.ErrnoException) => {
      resolve(error.code);
    });
  });
}
