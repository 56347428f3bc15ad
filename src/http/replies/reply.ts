import type Koa from 'koa';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Context } from 'koa';
import type { Tenant } from '../../fair-limiter.js';
import { OURS } from '../../scheduler.js';
import { partsOf, sendParts, type Part } from './send-parts.js';

/** JSON that is ready to be sent: a text in `latin1` stands for bytes that are UTF-8 already. */
interface Reply {
  status: number;
  text: string;
  encoding: 'utf8' | 'latin1';
  /** Instead of the text. */
  large?: LargeReply;
  /** Instead of the text. */
  stream?: StreamReply;
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
}

/** A text from here on is sent in parts. */
const LARGE_CHARACTERS = 128 * 1024;

const REPLY = Symbol('reply');
const HEADERS = Symbol('headers');
const ENDS_CONNECTION = Symbol('ends connection');

type WithReply = Context & { [REPLY]?: Reply; [HEADERS]?: string[]; [ENDS_CONNECTION]?: boolean };

/**
 * Gives the reply these headers, name and value in turn, unless the route sets its own of that name. They are sent as
 * one list: keeping each by its name until then, as `ctx.set` does, costs more than reading a document.
 */
export function addHeaders(ctx: Context, ...pairs: readonly string[]): void {
  const headers = ((ctx as WithReply)[HEADERS] ??= []);
  for (const part of pairs) headers.push(part);
}

/** Answers `value` as JSON. The same as setting `ctx.body`, without what Koa does to find out what a body is. */
export function replyJson(ctx: Context, value: object, status = 200): void {
  (ctx as WithReply)[REPLY] = { status, text: JSON.stringify(value), encoding: 'utf8' };
}

/** Answers JSON that has been encoded already, as UTF-8 bytes written one character each. */
export function replyEncodedJson(ctx: Context, text: string, status = 200): void {
  (ctx as WithReply)[REPLY] = { status, text, encoding: 'latin1' };
}

/** Answers JSON part by part, as UTF-8 bytes, without a length in advance. */
export function replyParts(ctx: Context, large: LargeReply, status = 200): void {
  (ctx as WithReply)[REPLY] = { status, text: '', encoding: 'latin1', large };
}

/** Answers 200 with a body that goes on. */
export function replyStream(ctx: Context, stream: StreamReply): void {
  (ctx as WithReply)[REPLY] = { status: 200, text: '', encoding: 'utf8', stream };
}

/** Whose turn of the event loop it is when a part of a large reply is made. */
export type TenantOf = (ctx: Context) => Tenant;

/** Counts what large replies hold that were made without asking for room. */
export type CountHeld = (ctx: Context, bytes: number) => () => void;

/**
 * Sends what replyJson, replyEncodedJson or replyParts has settled, or a plain object in `ctx.body`; leaves every other
 * body to Koa. All get the headers of addHeaders.
 */
export function sendReply(
  ctx: Context,
  countHeld: CountHeld = () => () => undefined,
  tenantOf: TenantOf = () => OURS,
): void {
  if (!(ctx as WithReply)[REPLY] && isPlain(ctx.body)) replyJson(ctx, ctx.body, ctx.status);
  const { [REPLY]: reply, [HEADERS]: headers = [] } = ctx as WithReply;
  // A connection keeps its last request, and with it what a large reply is made of.
  (ctx as WithReply)[REPLY] = undefined;
  const { res } = ctx;
  if ((ctx as WithReply)[ENDS_CONNECTION]) res.shouldKeepAlive = false;
  if (!reply) return setMissing(ctx, headers);
  ctx.respond = false;
  const { status, text, encoding, large, stream } = reply;
  // The client is gone, but logs and metrics record the status.
  if (res.destroyed && !res.headersSent) res.statusCode = status;
  if (res.headersSent || res.destroyed) {
    stream?.giveUp();
    return large?.release();
  }
  if (stream) return sendStream(ctx, status, headers, stream);
  // Replies depend on the API key, a header that shared caches ignore.
  const type = ['Content-Type', 'application/json; charset=utf-8', 'Cache-Control', 'no-store'];
  if (large) {
    writeHead(ctx, status, headers, type);
    return sendLarge(ctx, large, tenantOf(ctx));
  }
  writeHead(ctx, status, headers, [...type, 'Content-Length', `${Buffer.byteLength(text, encoding)}`]);
  if (text.length > LARGE_CHARACTERS) {
    return sendLarge(ctx, { parts: partsOf(text, encoding), release: countHeld(ctx, text.length) }, tenantOf(ctx));
  }
  if (sending.length === 0) setImmediate(sendAll);
  sending.push({ res, text: ctx.req.method === 'HEAD' ? '' : text, encoding });
}

function isPlain(body: unknown): body is object {
  if (typeof body !== 'object' || body === null) return false;
  return Array.isArray(body) || Object.getPrototypeOf(body) === Object.prototype;
}

function sendStream(ctx: Context, status: number, headers: string[], { type, begin, giveUp }: StreamReply): void {
  const { res } = ctx;
  // Proxies are asked not to collect it first.
  writeHead(ctx, status, headers, ['Content-Type', type, 'Cache-Control', 'no-store', 'X-Accel-Buffering', 'no']);
  if (ctx.req.method === 'HEAD') {
    giveUp();
    res.end();
    return;
  }
  const { socket } = res;
  // What it begins with goes out together with the headers.
  socket?.cork();
  // It says something all the time; whether it is taken is looked at for all connections together.
  socket?.setTimeout(0);
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

function sendLarge(ctx: Context, { parts, release }: LargeReply, tenant: Tenant): void {
  const { res } = ctx;
  res.once('close', release);
  if (ctx.req.method === 'HEAD') res.end();
  // Its own error is a fault of ours, logged like every other that comes too late for an answer.
  else sendParts(res, parts, tenant).catch((error: unknown) => ctx.app.emit('error', error, ctx));
}

function writeHead(ctx: Context, status: number, headers: string[], own: readonly string[]): void {
  const { res } = ctx;
  if (res.getHeaderNames().length === 0) {
    headers.push(...own);
    res.writeHead(status, headers);
  } else {
    res.statusCode = status;
    setMissing(ctx, headers);
    setMissing(ctx, own);
  }
}

interface Sending {
  res: ServerResponse;
  text: string;
  encoding: 'utf8' | 'latin1';
}

/**
 * Replies to the requests of one turn of the event loop are sent together at its end. Each by itself would wake its
 * client on another processor before the next request is looked at, which costs more than reading a document.
 */
let sending: Sending[] = [];

function sendAll(): void {
  // Their clients may have gone since.
  const replies = sending.filter(({ res }) => !res.destroyed && !res.writableEnded);
  sending = [];
  for (const { res, text, encoding } of replies) if (text !== '') res.write(text, encoding);
  // An end at once would be an empty second part, and the two cost more to write than one.
  process.nextTick(endAll, replies);
}

function endAll(replies: readonly Sending[]): void {
  for (const { res } of replies) res.end();
}

/** Makes every reply tell its client to close the connection, also those to requests under way. */
export function endConnections(api: Koa): void {
  // Koa's prototype of contexts; the field is ours alone.
  (api.context as unknown as WithReply)[ENDS_CONNECTION] = true;
}

function setMissing(ctx: Context, headers: readonly string[]): void {
  const { res } = ctx;
  if (res.headersSent) return;
  for (let at = 0; at < headers.length; at += 2) {
    const name = headers[at]!;
    if (name === 'Vary') ctx.vary(headers[at + 1]!);
    else if (!res.hasHeader(name)) res.setHeader(name, headers[at + 1]!);
  }
}
