import type Koa from 'koa';
import type { ServerResponse } from 'node:http';
import type { Context } from 'koa';

/** JSON that is ready to be sent: a text in `latin1` stands for bytes that are UTF-8 already. */
interface Reply {
  status: number;
  text: string;
  encoding: 'utf8' | 'latin1';
}

const REPLY = Symbol('reply');
const HEADERS = Symbol('headers');
const ENDS_CONNECTION = Symbol('ends connection');

type WithReply = Context & { [REPLY]?: Reply; [HEADERS]?: string[]; [ENDS_CONNECTION]?: boolean };

/**
 * Gives the reply these headers, name and value in turn, unless the route sets its own of that name. They are sent as one list: keeping each by its name until
 * then, as `ctx.set` does, costs more than reading a document.
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

/** Sends what replyJson or replyEncodedJson has settled; leaves every other body to Koa. Both get the headers of addHeaders. */
export function sendReply(ctx: Context): void {
  const { [REPLY]: reply, [HEADERS]: headers = [] } = ctx as WithReply;
  const { res } = ctx;
  if ((ctx as WithReply)[ENDS_CONNECTION]) res.shouldKeepAlive = false;
  if (!reply) return setMissing(ctx, headers);
  ctx.respond = false;
  const { status, text, encoding } = reply;
  // Nobody is there to take it, but logs and metrics tell what it was.
  if (res.destroyed && !res.headersSent) res.statusCode = status;
  if (res.headersSent || res.destroyed) return;
  const own = [
    'Content-Type',
    'application/json; charset=utf-8',
    'Content-Length',
    `${Buffer.byteLength(text, encoding)}`,
  ];
  if (res.getHeaderNames().length === 0) {
    headers.push(...own);
    res.writeHead(status, headers);
  } else {
    res.statusCode = status;
    setMissing(ctx, headers);
    setMissing(ctx, own);
  }
  if (sending.length === 0) setImmediate(sendAll);
  sending.push({ res, text: ctx.req.method === 'HEAD' ? '' : text, encoding });
}

interface Sending {
  res: ServerResponse;
  text: string;
  encoding: 'utf8' | 'latin1';
}

/**
 * Replies to the requests of one turn of the event loop are sent together at its end. Each by itself would wake its client on another processor before the next
 * request is looked at, which costs more than reading a document.
 */
let sending: Sending[] = [];

function sendAll(): void {
  const replies = sending;
  sending = [];
  for (const { res, text, encoding } of replies) {
    // Its client may have gone since.
    if (res.destroyed || res.writableEnded) continue;
    if (text === '') res.end();
    else res.end(text, encoding);
  }
}

/** From now on every reply tells its client to close the connection, also those to requests that are under way. */
export function endConnections(api: Koa): void {
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
