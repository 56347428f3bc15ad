import type { IncomingMessage } from 'node:http';
import type { Context, Middleware } from 'koa';
import rawBody from 'raw-body';
import { AppError, invalid, timedOut, tooLarge } from '../../errors.js';
import { orTimeout } from '../../platform/time/with-timeout.js';
import { CountedRequest } from './counted-request.js';

/** The content types that count as JSON; by their whole names, for which no list of file types is loaded. */
export const JSON_TYPES = ['application/json', '+json'];

/** The length that a request announces; null for one that comes in chunks. */
export function declaredLength({ headers }: IncomingMessage): number | null {
  if (headers['transfer-encoding'] !== undefined) return null;
  return Number(headers['content-length'] ?? 0);
}

interface ReadOptions {
  /** The most bytes, unpacked: 413 BODY_TOO_LARGE for more. */
  limit: number;
  /** What it announces of itself; null when it comes in chunks or packed. */
  length: number | null;
  /** The time for all of them: 408 REQUEST_TIMEOUT after it. */
  ms: number;
  /** Unpacked by its Content-Encoding; a body of another type is taken as it came. */
  isJson: boolean;
}

/** The whole body. What it fails with is for `explainUnread`. */
export function readBytes(ctx: Context, { limit, length, ms, isJson }: ReadOptions): Promise<Buffer> {
  const { req } = ctx;
  const late = (): Error => tooSlow(ms);
  const isPlain = length !== null && length <= limit && req instanceof CountedRequest;
  const whole = isPlain ? req.takeWhole(ms, late) : null;
  return whole ?? orTimeout(isJson ? readText(ctx, limit) : readRaw(ctx, limit), ms, late);
}

function readRaw(ctx: Context, limit: number): Promise<Buffer> {
  return rawBody(ctx.req, { limit, length: declaredLength(ctx.req) });
}

/** As bytes, so that the values can be counted before it is parsed, and it is seen whether it is UTF-8. */
async function readText(ctx: Context, limit: number): Promise<Buffer> {
  const read = readers.get(limit) ?? (await openReader(limit));
  await read(ctx, nothingMore);
  const body = detachBody(ctx);
  return Buffer.isBuffer(body) ? body : Buffer.alloc(0);
}

/**
 * Takes what was read of a body from its request. A connection that stays open keeps its last request, so a body that
 * is left there is kept until the next one comes or the connection ends, and nothing counts it.
 */
export function detachBody(ctx: Context): unknown {
  const request = ctx.request as { body?: unknown };
  const { body } = request;
  if (body !== undefined) request.body = undefined;
  return body;
}

const nothingMore = (): Promise<void> => Promise.resolve();

/** One for each limit that routes have. */
const readers = new Map<number, Middleware>();

/**
 * Loaded with the first body that comes packed or in chunks: with all that it brings it is a sixth of the server's
 * start and memory.
 */
async function openReader(limit: number): Promise<Middleware> {
  const { HttpMethodEnum, koaBody } = await import('koa-body');
  const reader = koaBody({
    json: false,
    urlencoded: false,
    multipart: false,
    text: true,
    textTypes: JSON_TYPES,
    encoding: '',
    textLimit: limit,
    parsedMethods: [HttpMethodEnum.POST, HttpMethodEnum.PUT, HttpMethodEnum.PATCH, HttpMethodEnum.DELETE],
  });
  readers.set(limit, reader);
  return reader;
}

/** What a body that was not read is to its client; `malformed`: the code where it is cut short or packed badly. */
export function explainUnread(error: unknown, limit: number, malformed: string): unknown {
  if (error instanceof AppError) return error;
  if ((error as { status?: number }).status === 413) {
    return tooLarge('BODY_TOO_LARGE', `The body is larger than ${limit} bytes`);
  }
  // Everything else that reading can throw is the client's doing: bad gzip, an unknown encoding, a body cut short.
  return invalid(malformed, 'The body was cut short, or is not packed as its Content-Encoding says', { cause: error });
}

const tooSlow = (ms: number): Error =>
  timedOut('REQUEST_TIMEOUT', `The body did not arrive within ${Math.ceil(ms / 1000)} seconds`, {
    headers: { Connection: 'close' },
  });
