import type { IncomingMessage, OutgoingHttpHeaders, Server, ServerResponse } from 'node:http';
import { checkExchange, type Exchange } from './check-exchange.js';
import { noteViolation } from './reply-violations.js';

const MAX_BYTES = 4 * 1024 * 1024;

/**
 * Compares everything that passes through a server with the API's document; the test during which something else passed
 * fails. `hasLimits`: whether the service counts requests, null when it counts some only.
 */
export function watchReplies(server: Server, hasLimits: boolean | null): void {
  server.prependListener('request', (request: IncomingMessage, response: ServerResponse) => {
    const sent = collectRequest(request);
    const answered = new Collected();
    const { writeHead, write, end } = response;
    // A stream keeps none of them.
    const requestHeaders = { ...request.headers };
    let head: OutgoingHttpHeaders = {};
    response.writeHead = function (this: ServerResponse, ...all: unknown[]) {
      head = readHead(all.at(-1));
      return (writeHead as (...given: unknown[]) => ServerResponse).call(this, ...all);
    } as typeof response.writeHead;
    response.write = function (this: ServerResponse, chunk: unknown, ...rest: unknown[]) {
      answered.add(chunk);
      return (write as (...all: unknown[]) => boolean).call(this, chunk, ...rest);
    } as typeof response.write;
    response.end = function (this: ServerResponse, ...all: unknown[]) {
      if (typeof all[0] !== 'function') answered.add(all[0]);
      // Before the client has the last of it, so that what is found belongs to the test that asked.
      const problems = tryToCheck({
        method: request.method ?? '',
        url: request.url ?? '',
        requestHeaders,
        requestBody: sent.bytes(),
        status: response.statusCode,
        headers: { ...response.getHeaders(), ...head },
        body: answered.bytes(),
        hasLimits,
      });
      for (const problem of problems)
        noteViolation(`${request.method} ${request.url} -> ${response.statusCode}: ${problem}`);
      return (end as (...given: unknown[]) => ServerResponse).call(this, ...all);
    } as typeof response.end;
  });
}

/** What cannot be checked is a violation too: an error thrown here would leave the client without its answer. */
function tryToCheck(exchange: Exchange): string[] {
  try {
    return checkExchange(exchange);
  } catch (error) {
    return [`the check failed: ${String(error)}`];
  }
}

/** The headers of a writeHead, which the response does not show afterwards: an object, or names and values in turn. */
function readHead(given: unknown): OutgoingHttpHeaders {
  if (typeof given !== 'object' || given === null) return {};
  const entries = Array.isArray(given)
    ? given.flatMap((name: string, at) => (at % 2 === 0 ? [[name, given[at + 1]]] : []))
    : Object.entries(given);
  return Object.fromEntries(entries.map(([name, value]) => [String(name).toLowerCase(), value]));
}

/** Sees what is pushed into the request without reading from it. */
function collectRequest(request: IncomingMessage): Collected {
  const collected = new Collected();
  const { push } = request;
  request.push = (chunk: unknown, encoding?: BufferEncoding) => {
    collected.add(chunk);
    return push.call(request, chunk, encoding);
  };
  return collected;
}

class Collected {
  #chunks: Buffer[] = [];
  #size = 0;

  add(chunk: unknown): void {
    if (chunk === null || chunk === undefined || this.#size > MAX_BYTES) return;
    const bytes = typeof chunk === 'string' ? Buffer.from(chunk) : Buffer.from(chunk as Uint8Array);
    this.#size += bytes.length;
    this.#chunks.push(bytes);
  }

  /** Null when it was too much to keep. */
  bytes(): Buffer | null {
    return this.#size > MAX_BYTES ? null : Buffer.concat(this.#chunks);
  }
}
