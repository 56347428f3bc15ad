import type Koa from 'koa';
import { STATUS_CODES, type IncomingMessage, type ServerResponse } from 'node:http';
import type { Context } from 'koa';
import type { Tenant } from '../../fair-limiter.js';
import { JsonWriter } from '../../platform/database/bson-json.js';
import { OURS } from '../../scheduler.js';
import { partsOf, sendParts, type Part } from './send-parts.js';

/** What settles a request: JSON as text, `latin1` text standing for bytes that are UTF-8 already; or another body. */
interface Reply {
  status: number;
  body: string | WrittenReply | LargeReply | StreamReply;
  encoding: 'utf8' | 'latin1';
}

/** A JSON body that is written behind its head, as bytes, when both are sent. */
export interface WrittenReply {
  /** Returns header lines that come of what was written. Waits for nothing: all replies are written in one buffer. */
  write: (out: JsonWriter) => string;
  /** True if the client has a copy of what was written, by its header lines: 304. */
  isCopied?: ((lines: string) => boolean) | undefined;
}

/** A body without a fixed end. */
export interface StreamReply {
  type: string;
  /** Called when the headers have been sent; ends the response at some time. */
  begin: (res: ServerResponse) => void;
  /** Called instead when the client has gone, or wants no body. */
  giveUp: () => void;
}

/** A body that is too large to be made in one go. */
export interface LargeReply {
  /** Made one after the other, each when the client has taken those before. */
  parts: Iterable<Part>;
  /** Called once, when nothing of it is held any more. */
  release: () => void;
  /** The bytes of all parts, where that is known. */
  length?: number;
}

/** A text from here on is sent in parts. */
const LARGE_CHARACTERS = 128 * 1024;

const REPLY = Symbol('reply');
const HEADERS = Symbol('headers');
const KEEP_ALIVE = Symbol('keep alive');

type WithReply = Context & {
  [REPLY]?: Reply | undefined;
  [HEADERS]?: string[];
  /** The lines by which replies keep their connection; null where they end it, undefined where Node decides. */
  [KEEP_ALIVE]?: string | null;
};

/**
 * Gives the reply these headers, lines of `Name: value` that each end with a line break, unless the route sets its own
 * of that name. Keeping each by its name until then, as `ctx.set` does, costs more than reading a document.
 */
export function addHeaders(ctx: Context, lines: string): void {
  const headers = (ctx as WithReply)[HEADERS];
  if (headers) headers.push(lines);
  else (ctx as WithReply)[HEADERS] = [lines];
}

/** Takes lines back that addHeaders was given. */
export function removeHeaders(ctx: Context, lines: string): void {
  const headers = (ctx as WithReply)[HEADERS] ?? [];
  (ctx as WithReply)[HEADERS] = headers.filter((each) => each !== lines);
}

/** Answers `value` as JSON. The same as setting `ctx.body`, without what Koa does to find out what a body is. */
export function replyJson(ctx: Context, value: object, status = 200): void {
  (ctx as WithReply)[REPLY] = { status, body: JSON.stringify(value), encoding: 'utf8' };
}

/**
 * Answers JSON that has been encoded already, as UTF-8 bytes written one character each, or is then; in parts without a
 * length in advance; or 200 with a body that goes on.
 */
export function replyEncoded(ctx: Context, body: Reply['body'], status = 200): void {
  (ctx as WithReply)[REPLY] = { status, body, encoding: 'latin1' };
}

/** Whose turn of the event loop it is when a part of a large reply is made. */
export type TenantOf = (ctx: Context) => Tenant;

/** Counts what large replies hold that were made without asking for room. */
export type CountHeld = (ctx: Context, bytes: number) => () => void;

const countNothing: CountHeld = () => () => undefined;
const ofOurs: TenantOf = () => OURS;

/**
 * Sends what replyJson or replyEncoded has settled; leaves every other body to Koa. All get the headers of addHeaders.
 * What is thrown while a body is written has sent nothing.
 */
export function sendReply(ctx: Context, countHeld: CountHeld = countNothing, tenantOf: TenantOf = ofOurs): void {
  const { [REPLY]: reply, [HEADERS]: headers = [], [KEEP_ALIVE]: keepAlive } = ctx as WithReply;
  // A connection keeps its last request, and with it what a large reply is made of.
  (ctx as WithReply)[REPLY] = undefined;
  const { res } = ctx;
  if (keepAlive === null) res.shouldKeepAlive = false;
  if (!reply) return setMissing(ctx, headers.join(''));
  ctx.respond = false;
  const { status, body, encoding } = reply;
  const isText = typeof body === 'string' || 'write' in body;
  // The client is gone, but logs and metrics record the status.
  if (res.destroyed && !res.headersSent) res.statusCode = status;
  if (res.headersSent || res.destroyed) return isText ? undefined : 'begin' in body ? body.giveUp() : body.release();
  if (!isText && 'begin' in body) return sendStream(ctx, status, headers, body);
  if (!isText) return sendLarge(ctx, status, headers, body, tenantOf);
  if (typeof body === 'string' && body.length > LARGE_CHARACTERS) {
    return sendLarge(ctx, status, headers, inParts(ctx, body, encoding, countHeld), tenantOf);
  }
  writer.clear(HEAD_BYTES);
  if (typeof body !== 'string') {
    const lines = body.write(writer);
    headers.push(lines);
    if (body.isCopied?.(lines)) {
      writeHead(ctx, 304, [...headers, NOT_KEPT]);
      res.end();
      return;
    }
  } else if (encoding === 'latin1') {
    writer.appendBytes(body);
  } else {
    writer.append(body);
  }
  const length = writer.place - HEAD_BYTES;
  if (length > LARGE_CHARACTERS) {
    return sendLarge(ctx, status, headers, inParts(ctx, writer.text(HEAD_BYTES), 'latin1', countHeld), tenantOf);
  }
  headers.push(JSON_HEADERS, contentLength(length));
  const whole = keepAlive ? wholeText(ctx, status, headers, keepAlive) : null;
  if (whole === null) writeHead(ctx, status, headers);
  if (sending.length === 0) setImmediate(sendAll);
  sending.push({ res, text: whole ?? writer.text(HEAD_BYTES), isWhole: whole !== null });
}

const contentLength = (bytes: number): string => `Content-Length: ${bytes}\r\n`;

/** Replies depend on the API key, a header that shared caches ignore. */
const NOT_KEPT = 'Cache-Control: no-store\r\n';
const JSON_HEADERS = `Content-Type: application/json; charset=utf-8\r\n${NOT_KEPT}`;

/** Room for a head in front of its body. */
const HEAD_BYTES = 4 * 1024;

const writer = new JsonWriter();

/** A response with Node's own fields by which it knows that its head was sent, which its types leave out. */
type Headed = ServerResponse & { _header: string; _headerSent: boolean };

/**
 * The body that has been written with its head as one text. Node's own way checks and joins the headers of each reply
 * one by one, which takes longer than reading the document. Null for replies that need it: to HEAD, with headers set by
 * their names, or the last of their connection.
 */
function wholeText(ctx: Context, status: number, headers: readonly string[], keepAlive: string): string | null {
  const { req, res } = ctx;
  if (req.method === 'HEAD' || req.headers.expect !== undefined) return null;
  if (res.getHeaderNames().length > 0 || !res.shouldKeepAlive || !res.socket) return null;
  const first = firstLine(status);
  const last = lastLines(keepAlive);
  let start = HEAD_BYTES - first.length - last.length;
  for (const lines of headers) start -= lines.length;
  if (start < 0) return null;
  let at = writer.put(first, start);
  for (const lines of headers) at = writer.put(lines, at);
  writer.put(last, at);
  res.statusCode = status;
  (res as Headed)._header = first;
  (res as Headed)._headerSent = true;
  return writer.text(start);
}

const firstLines = new Map<number, string>();

function firstLine(status: number): string {
  let line = firstLines.get(status);
  if (line === undefined) firstLines.set(status, (line = `HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\n`));
  return line;
}

const SECOND_MS = 1_000;
let newest = { second: 0, keepAlive: '', lines: '' };

/** The lines behind all others, the same for all replies of a second. */
function lastLines(keepAlive: string): string {
  const second = Math.floor(Date.now() / SECOND_MS);
  if (newest.second !== second || newest.keepAlive !== keepAlive) {
    newest = { second, keepAlive, lines: `Date: ${new Date(second * SECOND_MS).toUTCString()}\r\n${keepAlive}\r\n` };
  }
  return newest.lines;
}

function sendStream(ctx: Context, status: number, headers: string[], { type, begin, giveUp }: StreamReply): void {
  const { res } = ctx;
  // Proxies are asked not to collect it first.
  headers.push(`Content-Type: ${type}\r\nCache-Control: no-store\r\nX-Accel-Buffering: no\r\n`);
  writeHead(ctx, status, headers);
  if (ctx.req.method === 'HEAD') {
    giveUp();
    res.end();
    return;
  }
  const { socket } = res;
  // What it begins with goes out together with the headers.
  socket?.cork();
  res.flushHeaders();
  begin(res);
  setImmediate(() => {
    socket?.uncork();
    forgetRequest(ctx.req);
  });
}

/**
 * Drops what only the beginning of a reply needs, when its observers have seen it: a stream would hold it for hours.
 */
function forgetRequest(req: IncomingMessage & { _parsedUrl?: unknown }): void {
  req.rawHeaders = NO_HEADERS;
  req.headers = {};
  // Koa's copy of the address in its parts.
  req._parsedUrl = undefined;
}

const NO_HEADERS: string[] = [];

/** A text as a large reply, which knows its length in advance. */
function inParts(ctx: Context, text: string, form: Reply['encoding'], countHeld: CountHeld): LargeReply {
  const length = Buffer.byteLength(text, form);
  return { parts: partsOf(text, form), release: countHeld(ctx, text.length), length };
}

function sendLarge(ctx: Context, status: number, headers: string[], large: LargeReply, tenantOf: TenantOf): void {
  const { res } = ctx;
  const { parts, release, length } = large;
  headers.push(JSON_HEADERS, length === undefined ? '' : contentLength(length));
  writeHead(ctx, status, headers);
  res.once('close', release);
  if (ctx.req.method === 'HEAD') res.end();
  // Its own error is a fault of ours, logged like every other that comes too late for an answer.
  else sendParts(res, parts, tenantOf(ctx)).catch((error: unknown) => ctx.app.emit('error', error, ctx));
}

function writeHead(ctx: Context, status: number, headers: readonly string[]): void {
  const { res } = ctx;
  if (res.getHeaderNames().length === 0) {
    res.writeHead(status, pairsOf(headers.join('')).flat());
  } else {
    res.statusCode = status;
    setMissing(ctx, headers.join(''));
  }
}

/**
 * Replies to the requests of one turn of the event loop are sent together at its end. Each by itself would wake its
 * client on another processor before the next request is looked at, which costs more than reading a document.
 */
let sending: { res: ServerResponse; text: string; isWhole: boolean }[] = [];

function sendAll(): void {
  const replies = sending;
  sending = [];
  for (const { res, text, isWhole } of replies) {
    // Its client may have gone since.
    if (res.destroyed || res.writableEnded) continue;
    if (!isWhole) {
      res.end(text, 'latin1');
      continue;
    }
    // By itself: Node would hold it back for what may follow.
    res.socket?.write(text, 'latin1');
    res.end();
  }
}

/** Says in every reply how long its connection is kept. */
export function keepConnections(api: Koa, ms: number): void {
  // Koa's prototype of contexts; the field is ours alone.
  (api.context as unknown as WithReply)[KEEP_ALIVE] =
    `Connection: keep-alive\r\nKeep-Alive: timeout=${Math.floor(ms / SECOND_MS)}\r\n`;
}

/** Makes every reply tell its client to close the connection, also those to requests under way. */
export function endConnections(api: Koa): void {
  // As above.
  (api.context as unknown as WithReply)[KEEP_ALIVE] = null;
}

function pairsOf(lines: string): [name: string, value: string][] {
  return lines
    .split('\r\n')
    .filter((line) => line !== '')
    .map((line) => [line.slice(0, line.indexOf(':')), line.slice(line.indexOf(':') + 2)]);
}

function setMissing(ctx: Context, lines: string): void {
  const { res } = ctx;
  if (res.headersSent) return;
  for (const [name, value] of pairsOf(lines)) {
    if (name === 'Vary') ctx.vary(value);
    else if (!res.hasHeader(name)) res.setHeader(name, value);
  }
}
