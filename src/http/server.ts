import { createServer, type Server } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { randomUUID } from 'node:crypto';
import type Koa from 'koa';
import { AppError, invalid } from '../errors.js';
import { presentError } from './write-errors.js';

export interface RunningServer {
  /** Address to reach it at, for example `http://127.0.0.1:4000`. */
  url: string;
  port: number;
  /** Stops taking connections, lets what is under way finish for at most `graceMs`, then cuts what is left. Safe to call twice. */
  stop(graceMs: number): Promise<void>;
}

/** Listens on host and port (0 = any free one). Throws an AppError that names the port when it is taken. */
export async function startServer(api: Koa, host: string, port: number): Promise<RunningServer> {
  let draining = false;
  const handle = api.callback();
  const server = createServer((request, response) => {
    // Keep-alive connections would otherwise hold a stopping server until their timeout.
    if (draining) response.setHeader('Connection', 'close');
    void handle(request, response);
  });
  // A file may come over a slow line: 10 MiB in five minutes are 35 KiB a second.
  server.requestTimeout = 300_000;
  server.headersTimeout = 20_000;
  server.keepAliveTimeout = 65_000;
  server.on('clientError', answerBrokenRequest);
  await listen(server, host, port);
  const bound = server.address() as AddressInfo;
  const urlHost = bound.family === 'IPv6' ? `[${bound.address}]` : bound.address;
  let stopping: Promise<void> | null = null;
  return {
    url: `http://${urlHost}:${bound.port}`,
    port: bound.port,
    stop: (graceMs) => {
      draining = true;
      return (stopping ??= stopServer(server, graceMs));
    },
  };
}

function listen(server: Server, host: string, port: number): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', (error: NodeJS.ErrnoException) => {
      const text = LISTEN_ADVICE[error.code ?? ''];
      reject(text ? new AppError('conflict', 'CANNOT_LISTEN', text(host, port), { cause: error }) : error);
    });
    server.listen({ host, port, backlog: 1024 }, resolve);
  });
}

const LISTEN_ADVICE: Record<string, (host: string, port: number) => string> = {
  EADDRINUSE: (_host, port) =>
    `Port ${port} is already taken: choose another with --port, or stop what is listening there.`,
  EACCES: (_host, port) => `Port ${port} needs more rights than this user has: choose one above 1023 with --port.`,
  EADDRNOTAVAIL: (host) => `This machine has no address ${host}: choose another with --host.`,
  ENOTFOUND: (host) => `The host name ${host} cannot be resolved: choose another with --host.`,
};

async function stopServer(server: Server, graceMs: number): Promise<void> {
  const closed = new Promise<void>((resolve) => server.close(() => resolve()));
  server.closeIdleConnections();
  const cut = setTimeout(() => server.closeAllConnections(), graceMs);
  await closed;
  clearTimeout(cut);
}

const BROKEN_STATUS: Record<string, string> = {
  HPE_HEADER_OVERFLOW: '431 Request Header Fields Too Large',
  ERR_HTTP_REQUEST_TIMEOUT: '408 Request Timeout',
};

/** Requests that Node's parser refuses never reach Koa; they too get the one error shape. */
function answerBrokenRequest(error: NodeJS.ErrnoException, socket: Socket): void {
  if (error.code === 'ECONNRESET' || !socket.writable) {
    socket.destroy();
    return;
  }
  const status = BROKEN_STATUS[error.code ?? ''] ?? '400 Bad Request';
  const body = JSON.stringify(presentError(invalid('BAD_REQUEST', 'The request is not valid HTTP'), randomUUID()));
  socket.end(
    `HTTP/1.1 ${status}\r\nContent-Type: application/json; charset=utf-8\r\nContent-Length: ${Buffer.byteLength(body)}\r\nConnection: close\r\n\r\n${body}`,
  );
}
