import { createServer, type IncomingMessage, type RequestListener, type Server, type ServerResponse } from 'node:http';
import { Server as NetServer, type AddressInfo, type Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { chmod } from 'node:fs/promises';
import type Koa from 'koa';
import { AppError, invalid } from '../errors.js';
import { unixSocketOf } from './unix-socket.js';
import { acceptFirst } from './accept-first.js';
import { countedRequests, type CountedRequest } from './requests/counted-request.js';
import { boundConnections, type ConnectionBounds } from './bound-connections.js';
import { endConnections, keepConnections } from './replies/reply.js';
import { randomUUID } from 'node:crypto';
import { presentError } from './replies/write-errors.js';

export interface RunningServer {
  /** Address to reach it at, for example `http://127.0.0.1:4000`. */
  url: string;
  /** None of a socket of this machine. */
  port: number;
  /**
   * Goes on serving for a while if asked to; then takes no more connections, asks clients with every reply to close
   * theirs, lets what is under way finish for at most `graceMs`, and cuts what is left. Safe to call twice.
   */
  stop(graceMs: number, stopping?: Stopping): Promise<void>;
}

export interface Stopping {
  /** The time to keep serving while clients are connected. */
  drainMs?: number;
  /**
   * Waits until no other process listens on the port, because closed clients would reconnect to it.
   */
  untilNobodyListens?: () => Promise<void>;
}

/** The times that a client may take, milliseconds. */
export interface ClientTimeouts {
  /** To send the headers of a request. */
  headersMs: number;
  /** To send a request completely. */
  requestMs: number;
  /** Without sending or taking anything, inside a request or between two of one connection. */
  silenceMs: number;
  /** Without taking anything of a reply that waits for it. */
  stallMs: number;
}

/**
 * A request of ten megabytes passes at 300 kbit/s; proxies that keep connections for a minute never meet one that was
 * just closed.
 */
const TIMEOUTS: ClientTimeouts = {
  headersMs: 10_000,
  requestMs: 300_000,
  silenceMs: 65_000,
  stallMs: 10_000,
};

/** A response with Node's own field by which it says how long its connection is kept, which its types leave out. */
type KeptResponse = ServerResponse & { _keepAliveTimeout: number };

/** Listens on host and port (0 = any free one). Throws an AppError that names the port when it is taken. */
export async function startServer(
  api: Koa,
  host: string,
  port: number,
  timeouts: ClientTimeouts = TIMEOUTS,
  connections: ConnectionBounds | null = null,
): Promise<RunningServer> {
  let closing = false;
  keepConnections(api, timeouts.silenceMs);
  /** Requests that came in the last moments of listening; null at all other times. */
  let held: (() => void)[] | null = null;
  const unheard = new Set<Socket>();
  const handle = api.callback();
  const taken = new WeakMap<Socket, Connection>();
  const options = {
    IncomingMessage: countedRequests((request) => endCut(request, taken.get(request.socket))),
    headersTimeout: timeouts.headersMs,
    requestTimeout: timeouts.requestMs,
    // Otherwise each request would set two timers; `timeout` holds between requests too.
    keepAliveTimeout: 0,
    // How late a timeout may be noticed.
    connectionsCheckingInterval: Math.min(2_000, timeouts.headersMs),
    // Asked for below, where the refusal has the one error shape.
    requireHostHeader: false,
  };
  const { listener, noteConnection } = acceptFirst((request, response) => {
    if (closing) response.shouldKeepAlive = false;
    (response as KeptResponse)._keepAliveTimeout = timeouts.silenceMs;
    const refusal = refusalOf(request);
    if (refusal) refuse(request.socket, refusal);
    else if (held) held.push(() => void handle(request, response));
    else void handle(request, response);
  });
  const begin = oneAfterTheOther(listener, unheard, taken);
  const server = createServer(options, begin);
  // One listener for all connections: each holds as little as can be.
  const forget = function (this: Socket): void {
    unheard.delete(this);
  };
  server.on('connection', (socket: Socket) => {
    noteConnection();
    unheard.add(socket);
    socket.on('close', forget);
  });
  const lastMoments: LastMoments = {
    unheard,
    begin: () => void (held = []),
    end() {
      closing = true;
      // Keep-alive connections would otherwise hold a stopping server until their timeout.
      endConnections(api);
      const waiting = held ?? [];
      held = null;
      for (const answer of waiting) answer();
    },
  };
  if (connections) boundConnections(server, connections);
  server.timeout = timeouts.silenceMs;
  endStalled(server, timeouts.stallMs, (socket) => endSilent(socket, taken.get(socket)));
  server.on('clientError', answerBrokenRequest);
  server.on('checkContinue', (request: CountedRequest, response: ServerResponse) => {
    request.continues = response;
    begin(request, response);
  });
  // Requests that Node would answer by itself, without a word or not at all.
  server.on('checkExpectation', (request: IncomingMessage) => refuse(request.socket, UNKNOWN_EXPECTATION));
  server.on('connect', (_request, socket: Duplex) => refuse(socket, NO_TUNNEL));
  await listen(server, host, port);
  // A connection that could not be accepted, for want of descriptors.
  server.on('error', () => connections?.onRejection?.('all'));
  const bound = server.address() as AddressInfo;
  let stopping: Promise<void> | null = null;
  return {
    url: unixSocketOf(host) === null ? urlOf(bound) : host,
    port: bound.port,
    stop: (graceMs, how = {}) => {
      return (stopping ??= stopServer(server, lastMoments, graceMs, how));
    },
  };
}

/**
 * The most requests that may wait behind the current one of their connection; a client that sends more without reading
 * is cut off.
 */
const MAX_WAITING = 100;

interface Connection {
  newest: ServerResponse;
  waiting: number;
}

/**
 * Requests that a client sends without waiting for replies are taken up one at a time. Node would hand them over all at
 * once, hold their replies in memory until the first is read, and never tell of the others' end when the client goes
 * away.
 */
function oneAfterTheOther(
  begin: RequestListener,
  unheard: Set<Socket>,
  connections: WeakMap<Socket, Connection>,
): RequestListener {
  return (request, response) => {
    const { socket } = request;
    // The previous response announced that the connection closes.
    if (socket.writableEnded) return;
    const connection = connections.get(socket);
    if (!connection) {
      unheard.delete(socket);
      connections.set(socket, { newest: response, waiting: 0 });
      begin(request, response);
      return;
    }
    const before = connection.newest;
    connection.newest = response;
    if (before.closed) {
      begin(request, response);
      return;
    }
    if (++connection.waiting > MAX_WAITING) {
      socket.destroy();
      return;
    }
    before.once('close', () => {
      connection.waiting--;
      // It has the connection only if the one before left it open.
      if (response.socket && !response.socket.destroyed) begin(request, response);
      else response.emit('close');
    });
  };
}

/**
 * A client that is not let in waits a second, then two, then four before it tries again: all clients of a service come
 * back at once when it was started again. Systems set a limit of their own below it (Linux: net.core.somaxconn).
 */
const MAX_WAITING_TO_CONNECT = 16_384;

const urlOf = ({ family, address, port }: AddressInfo): string =>
  `http://${family === 'IPv6' ? `[${address}]` : address}:${port}`;

function listen(server: Server, host: string, port: number): Promise<void> {
  const path = unixSocketOf(host);
  return new Promise((resolve, reject) => {
    server.once('error', (error: NodeJS.ErrnoException) => {
      const text = LISTEN_ADVICE[error.code ?? ''];
      reject(text ? new AppError('conflict', 'CANNOT_LISTEN', text(host, port), { cause: error }) : error);
    });
    const backlog = MAX_WAITING_TO_CONNECT;
    if (path === null) server.listen({ host, port, backlog }, resolve);
    else server.listen({ path, backlog }, () => resolve(chmod(path, SOCKET_MODE)));
  });
}

/** The proxy's user is to be in the group of ours. */
const SOCKET_MODE = 0o660;

const LISTEN_ADVICE: Record<string, (host: string, port: number) => string> = {
  EADDRINUSE: (host, port) =>
    unixSocketOf(host) === null
      ? `Port ${port} is already taken: choose another with --port, or stop what is listening there.`
      : `${host} is already taken: choose another with --host, or stop what is listening there.`,
  EACCES: (host, port) =>
    unixSocketOf(host) === null
      ? `Port ${port} needs more rights than this user has: choose one above 1023 with --port.`
      : `This user may not write to the folder of ${host}: choose another with --host.`,
  EADDRNOTAVAIL: (host) => `This machine has no address ${host}: choose another with --host.`,
  ENOTFOUND: (host) => `The host name ${host} cannot be resolved: choose another with --host.`,
};

/** A client whose connection was just accepted may not have been heard yet. */
const LISTEN_TO_THE_LAST_MS = 250;

/** One that has said nothing yet may be of a machine that is busy. */
const LISTEN_TO_THE_SILENT_MS = 1_000;

/**
 * The turns of the event loop without a new connection, each a millisecond or longer, after which no client waits to be
 * accepted.
 */
const QUIET_TURNS = 25;
const MAX_UNTIL_QUIET_MS = 500;

/** The changes in the last moments of listening (decision 44). */
interface LastMoments {
  /** Connections that have sent no request yet. */
  unheard: ReadonlySet<Socket>;
  /**
   * Makes requests wait from now on: an answered client might connect again in the very moment in which listening ends.
   */
  begin(): void;
  /** Answers those that have waited. From now on every reply closes its connection. */
  end(): void;
}

/**
 * Stops the server (decision 44). Clients keep their connections while it listens, and it stops listening when no
 * client waits to be accepted: a client that connects just then would be reset.
 */
async function stopServer(
  server: Server,
  lastMoments: LastMoments,
  graceMs: number,
  { drainMs = 0, untilNobodyListens }: Stopping,
): Promise<void> {
  await untilUnused(server, drainMs);
  lastMoments.begin();
  await untilQuiet(server);
  // Not the HTTP server's own close, which cuts at once what has been accepted but not been heard.
  const closed = new Promise<void>((resolve) => NetServer.prototype.close.call(server, () => resolve()));
  await untilNobodyListens?.();
  lastMoments.end();
  const cut = setTimeout(() => server.closeAllConnections(), graceMs);
  await untilUnused(server, Math.min(LISTEN_TO_THE_LAST_MS, graceMs));
  await untilHeard(lastMoments.unheard, Math.min(LISTEN_TO_THE_SILENT_MS, graceMs));
  server.close();
  await closed;
  clearTimeout(cut);
}

const LOOK_MS = 50;

/** Resolves when no client has connected recently, at the latest after half a second. */
async function untilQuiet(server: Server): Promise<void> {
  const end = performance.now() + MAX_UNTIL_QUIET_MS;
  let turns = 0;
  const note = (): void => void (turns = 0);
  server.on('connection', note);
  // Turns and not time: each checks for waiting connections, however long other work takes.
  for (; turns < QUIET_TURNS && performance.now() < end; turns++) {
    await new Promise((resolve) => setTimeout(resolve, 1));
  }
  server.off('connection', note);
}

async function untilHeard(unheard: ReadonlySet<Socket>, ms: number): Promise<void> {
  const end = performance.now() + ms;
  while (unheard.size > 0 && performance.now() < end) await new Promise((resolve) => setTimeout(resolve, LOOK_MS));
}

/** Resolves when no client is connected, at the latest after `ms`. */
async function untilUnused(server: Server, ms: number): Promise<void> {
  const end = performance.now() + ms;
  while (performance.now() < end) {
    const connections = await new Promise<number>((resolve) =>
      server.getConnections((_error, count) => resolve(count)),
    );
    if (connections === 0) return;
    await new Promise((resolve) => setTimeout(resolve, LOOK_MS));
  }
}

const NOT_HTTP: Refusal = ['400 Bad Request', 'BAD_REQUEST', 'The request is not valid HTTP'];
const NO_HOST: Refusal = ['400 Bad Request', 'BAD_REQUEST', 'The header Host is missing'];
const TWO_HOSTS: Refusal = ['400 Bad Request', 'BAD_REQUEST', 'The header Host is given more than once'];
const UNKNOWN_EXPECTATION: Refusal = [
  '417 Expectation Failed',
  'EXPECTATION_FAILED',
  'Only 100-continue can be expected',
];
const NO_TUNNEL: Refusal = ['405 Method Not Allowed', 'METHOD_NOT_ALLOWED', 'CONNECT is not allowed here'];
const TOO_SLOW: Refusal = [
  '503 Service Unavailable',
  'BUSY',
  'This took longer than a minute: try again in a moment. A write may have been done all the same',
];
const TOO_MANY_HEADERS: Refusal = [
  '431 Request Header Fields Too Large',
  'HEADERS_TOO_LARGE',
  'The request has more than 200 header lines',
];
const ERRORS: Readonly<Record<string, Refusal>> = {
  HPE_HEADER_OVERFLOW: ['431 Request Header Fields Too Large', 'HEADERS_TOO_LARGE', 'The headers are too large'],
  ERR_HTTP_REQUEST_TIMEOUT: ['408 Request Timeout', 'REQUEST_TIMEOUT', 'The request took too long to arrive'],
};

/** Node takes the first of several hosts, where a proxy in front may have gone by the last. */
function refusalOf({ headers, httpVersion, rawHeaders }: IncomingMessage): Refusal | null {
  if (rawHeaders.length > 2 * MAX_HEADER_LINES) return TOO_MANY_HEADERS;
  if (headers.host === undefined) return httpVersion === '1.1' ? NO_HOST : null;
  let hosts = 0;
  for (let at = 0; at < rawHeaders.length; at += 2) {
    const name = rawHeaders[at]!;
    if (name.length === HOST.length && name.toLowerCase() === HOST) hosts++;
  }
  return hosts > 1 ? TWO_HOSTS : null;
}

const HOST = 'host';

/** Each line costs; beyond 2,000, Node leaves out the rest without a word. */
const MAX_HEADER_LINES = 200;

/** Requests that Node's parser refuses never reach Koa; they too get the one error shape. */
function answerBrokenRequest(error: NodeJS.ErrnoException, socket: Duplex): void {
  if (error.code === 'ECONNRESET' || !socket.writable) socket.destroy();
  else refuse(socket, ERRORS[error.code ?? ''] ?? NOT_HTTP);
}

/** A client that has asked and is not answered yet gets a response before its connection closes. */
function endSilent(socket: Socket, connection: Connection | undefined): void {
  const asked = connection?.waiting === 0 ? connection.newest : null;
  if (asked?.req.complete && !asked.headersSent && !asked.closed && socket.writable) {
    refuse(socket, TOO_SLOW, ['Retry-After: 1']);
    socket.destroySoon();
  } else {
    socket.destroy();
  }
}

/**
 * Ends the connection of a body that is not read on. A client without a response gets an error; nothing can be sent
 * where a reply to an earlier request is under way.
 */
function endCut(request: CountedRequest, connection: Connection | undefined): void {
  const { socket } = request;
  const response = connection?.newest;
  if (response?.req !== request || connection!.waiting > 0) {
    socket.destroy();
  } else if (response.closed) {
    endGently(socket);
  } else if (response.headersSent || request.isLeft) {
    response.once('close', () => endGently(socket));
  } else {
    // For the handler the client is gone.
    response.detachSocket(socket);
    response.on('error', () => undefined);
    refuse(socket, inPieces(request));
    response.destroy();
    response.emit('close');
    request.destroy();
  }
}

function inPieces({ pieces, bytes }: CountedRequest): Refusal {
  const text = `The body came in ${pieces} pieces, for ${bytes} bytes: send it with a Content-Length, or in chunks of 1 kB or more`;
  return ['400 Bad Request', 'BODY_IN_PIECES', text];
}

const STALL_LOOK_MS = 1_000;

/**
 * Ends connections whose client takes nothing of a reply that waits for it for `stallMs`; one that is taken slowly may
 * go on. Otherwise the server's own timeouts hold, and `endSilent` ends the connection.
 */
function endStalled(server: Server, stallMs: number, endSilent: (socket: Socket) => void): void {
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
  const looking = setInterval(look, Math.min(STALL_LOOK_MS, stallMs)).unref();
  server.once('close', () => clearInterval(looking));
}

/** Status line, code and text of a refusal that never reaches Koa. */
type Refusal = readonly [status: string, code: string, message: string];

/** The time that a client has to read the last words, when it has not stopped sending. */
const LINGER_MS = 1_000;

/** Closes a connection of which nothing more is read; a reset at once might take the last words from its client. */
function endGently(socket: Duplex, words = ''): void {
  socket.end(words, () => setTimeout(() => socket.destroy(), LINGER_MS).unref());
}

/** The last words on a connection. */
function refuse(socket: Duplex, [status, code, message]: Refusal, more: readonly string[] = []): void {
  const requestId = randomUUID();
  const body = JSON.stringify(presentError(invalid(code, message), requestId));
  const head = [
    `HTTP/1.1 ${status}`,
    'Content-Type: application/json; charset=utf-8',
    `Content-Length: ${Buffer.byteLength(body)}`,
    `x-request-id: ${requestId}`,
    'Connection: close',
    ...more,
  ];
  endGently(
    socket.on('error', () => undefined),
    `${head.join('\r\n')}\r\n\r\n${body}`,
  );
}
