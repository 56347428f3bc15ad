import { isIP, type LookupFunction } from 'node:net';
import type { Agent, buildConnector, Dispatcher, fetch, request, RequestInit as UndiciRequestInit } from 'undici';
import {
  isPublicAddress,
  isWebPort,
  portOf,
  PrivateAddressError,
  requirePublicAddresses,
  resolveBySystem,
  ServicePortError,
  type Resolve,
} from './public-address.js';
import { withSpan, type Telemetry } from '../observe/telemetry.js';
import { withTimeout } from '../time/with-timeout.js';

export interface OutboundOptions {
  /** Lets requests reach private addresses: development only. */
  allowPrivate: boolean;
  /** The limit for the whole exchange, from the name's resolution to the end of the answer. */
  timeoutMs?: number;
  resolve?: Resolve;
  telemetry?: Telemetry | null;
}

export interface OutboundRequest {
  url: string;
  method: 'POST';
  headers: Record<string, string>;
  body: string;
  signal?: AbortSignal;
  /** How much of the answer is kept; KEPT_BODY_BYTES unless given. */
  keptBytes?: number;
}

export interface OutboundReply {
  status: number;
  headers: Record<string, string | string[] | undefined>;
  /** The beginning of the answer, at most the kept bytes. */
  body: Buffer;
}

/** Why there was no answer. `blocked`: the address is not public. */
export type OutboundFailure = 'blocked' | 'timeout' | 'dns' | 'connection' | 'tls' | 'aborted';

export class OutboundError extends Error {
  readonly failure: OutboundFailure;
  constructor(failure: OutboundFailure, message: string, cause: unknown) {
    super(message, { cause });
    this.name = 'OutboundError';
    this.failure = failure;
  }
}

/** Requests to addresses that tenants choose. */
export interface Outbound {
  /**
   * Refuses with PrivateAddressError a URL whose host is, or now resolves to, an address that is not public, and
   * with ServicePortError one whose port belongs to another kind of service. A name that cannot be resolved passes:
   * each request looks again.
   */
  check(url: URL): Promise<void>;
  /** Sends one request and follows nothing; any status is an answer. Throws OutboundError when there is none. */
  send(request: OutboundRequest): Promise<OutboundReply>;
  /**
   * The global fetch as far as addresses that projects name may be reached: not private ones, no redirects, no answer
   * of more than a mebibyte.
   */
  fetch(this: void, url: string, init?: RequestInit): Promise<Response>;
  close(): Promise<void>;
}

const TIMEOUT_MS = 10_000;
const CHECK_TIMEOUT_MS = 3_000;
const KEPT_BODY_BYTES = 1024;
/** An answer that goes on beyond this is cut off; what came so far counts. */
const MAX_BODY_BYTES = 64 * 1024;
const MAX_HEADER_BYTES = 16 * 1024;
/** The size beyond which an exchange fails for every reader. */
const MAX_RESPONSE_BYTES = 1024 * 1024;

/**
 * Opens the way out. Every connection is made to an address that was checked just then, and checked again once it
 * stands.
 */
export function openOutbound({
  allowPrivate,
  timeoutMs = TIMEOUT_MS,
  resolve = resolveBySystem,
  telemetry = null,
}: OutboundOptions): Outbound {
  let opening: Promise<Way> | null = null;
  const open = (): Promise<Way> => (opening ??= openWay(allowPrivate, timeoutMs, resolve));
  const exchange = async ({
    url,
    method,
    headers,
    body,
    signal,
    keptBytes,
  }: OutboundRequest): Promise<OutboundReply> => {
    const { agent, request } = await open();
    const timeUp = AbortSignal.timeout(timeoutMs);
    try {
      const reply = await request(url, {
        dispatcher: agent,
        method,
        headers,
        body,
        signal: signal ? AbortSignal.any([signal, timeUp]) : timeUp,
      });
      return {
        status: reply.statusCode,
        headers: reply.headers,
        body: await readBeginning(reply.body, keptBytes),
      };
    } catch (error) {
      throw explain(error, timeUp, signal);
    }
  };
  return {
    async check(url) {
      if (allowPrivate) return;
      try {
        await withTimeout(requirePublicAddresses(url.hostname, resolve), CHECK_TIMEOUT_MS, null);
      } catch (error) {
        if (error instanceof PrivateAddressError) throw error;
      }
      if (!isWebPort(portOf(url))) throw new ServicePortError(portOf(url));
    },
    send(outgoing) {
      // The rest of an address may be a secret.
      const attributes = { 'server.address': new URL(outgoing.url).hostname, 'http.request.method': outgoing.method };
      return withSpan(telemetry, outgoing.method, { kind: 'client', attributes }, () => {
        const headers = { ...outgoing.headers };
        telemetry?.inject(headers);
        return exchange({ ...outgoing, headers });
      });
    },
    async fetch(url, init) {
      const { agent, fetch } = await open();
      const options = { ...init, redirect: 'manual', dispatcher: agent } as UndiciRequestInit;
      return await fetch(url, options);
    },
    async close() {
      await (await opening)?.agent.destroy();
    },
  };
}

interface Way {
  agent: Agent;
  request: typeof request;
  fetch: typeof fetch;
}

/** undici is loaded when the first request goes out: most commands never send one. */
async function openWay(allowPrivate: boolean, timeoutMs: number, resolve: Resolve): Promise<Way> {
  const undici = await import('undici');
  const find = allowPrivate ? resolve : (host: string) => requirePublicAddresses(host, resolve);
  const connect = undici.buildConnector({ timeout: timeoutMs, lookup: pinningLookup(find) });
  const agent = new undici.Agent({
    connect: allowPrivate ? connect : publicOnly(connect),
    connections: null,
    pipelining: 1,
    keepAliveTimeout: 2_000,
    maxHeaderSize: MAX_HEADER_BYTES,
    headersTimeout: timeoutMs,
    bodyTimeout: timeoutMs,
    maxResponseSize: MAX_RESPONSE_BYTES,
  });
  return { agent, request: undici.request, fetch: undici.fetch };
}

async function readBeginning(body: Dispatcher.ResponseData['body'], keptBytes = KEPT_BODY_BYTES): Promise<Buffer> {
  const kept: Buffer[] = [];
  let length = 0;
  // Leaving the loop early destroys the connection, which is what an endless answer deserves.
  for await (const chunk of body as AsyncIterable<Buffer>) {
    if (length < keptBytes) kept.push(chunk.subarray(0, keptBytes - length));
    length += chunk.length;
    if (length > MAX_BODY_BYTES) break;
  }
  return Buffer.concat(kept);
}

/**
 * Connects to nothing but public addresses: literals are checked before, names by the only look-up there is, the
 * socket's own word afterwards.
 */
function publicOnly(connect: buildConnector.connector): buildConnector.connector {
  return (options, callback) => {
    const literal = options.hostname.replace(/^\[|\]$/g, '');
    const port = portOf({ port: options.port, protocol: options.protocol });
    if (!isWebPort(port)) return callback(new ServicePortError(port), null);
    // A literal is connected to without any look-up.
    if (isIP(literal) && !isPublicAddress(literal)) return callback(new PrivateAddressError(literal), null);
    connect(options, (...[error, socket]) => {
      if (error) return callback(error, null);
      if (socket && isPublicAddress(socket.remoteAddress ?? '')) return callback(null, socket);
      socket?.destroy();
      callback(new PrivateAddressError(literal), null);
    });
  };
}

/** The connection goes to exactly the addresses that `find` answers. */
function pinningLookup(find: (hostname: string) => Promise<string[]>): LookupFunction {
  return (hostname, options, callback) => {
    find(hostname).then(
      (addresses) => {
        const wanted = addresses
          .map((address) => ({ address, family: isIP(address) }))
          .filter(({ family }) => !options.family || family === familyNumber(options.family));
        const first = wanted[0];
        if (!first) callback(Object.assign(new Error(`${hostname} has no address`), { code: 'ENOTFOUND' }), '', 0);
        else if (options.all) callback(null, wanted);
        else callback(null, first.address, first.family);
      },
      (error: unknown) => callback(error as NodeJS.ErrnoException, '', 0),
    );
  };
}

const familyNumber = (family: number | 'IPv4' | 'IPv6'): number =>
  family === 'IPv4' ? 4 : family === 'IPv6' ? 6 : family;

const TLS_CODE = /^(ERR_TLS|ERR_SSL|CERT_|DEPTH_ZERO|SELF_SIGNED|UNABLE_TO|HOSTNAME_MISMATCH|EPROTO)/;
const DNS_CODE = /^(ENOTFOUND|EAI_AGAIN|ENODATA|ESERVFAIL|EAI_FAIL)$/;

function explain(error: unknown, timeUp: AbortSignal, signal: AbortSignal | undefined): OutboundError {
  if (findCause(error, (cause) => cause instanceof PrivateAddressError)) {
    return new OutboundError('blocked', 'The address is not public, so nothing was sent.', error);
  }
  if (findCause(error, (cause) => cause instanceof ServicePortError)) {
    return new OutboundError('blocked', 'The port belongs to another kind of service, so nothing was sent.', error);
  }
  if (timeUp.aborted || findCause(error, ({ name }) => /Timeout/.test(name))) {
    return new OutboundError('timeout', 'There was no complete answer in time.', error);
  }
  if (signal?.aborted) return new OutboundError('aborted', 'The attempt was interrupted.', error);
  const code = findCause(error, ({ code }) => typeof code === 'string')?.code ?? '';
  if (DNS_CODE.test(code)) return new OutboundError('dns', 'The host name cannot be resolved.', error);
  if (TLS_CODE.test(code)) {
    return new OutboundError('tls', `The TLS connection was not trustworthy or failed (${code}).`, error);
  }
  return new OutboundError('connection', `The connection failed${code && ` (${code})`}.`, error);
}

/** The first of an error, its causes and what it collects that fits. */
function findCause(error: unknown, fits: (error: NodeJS.ErrnoException) => boolean): NodeJS.ErrnoException | undefined {
  if (!(error instanceof Error)) return undefined;
  if (fits(error)) return error;
  for (const inner of [error.cause, ...(error instanceof AggregateError ? (error.errors as unknown[]) : [])]) {
    const found = findCause(inner, fits);
    if (found) return found;
  }
  return undefined;
}
