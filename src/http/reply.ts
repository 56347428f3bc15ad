import type { Context } from 'koa';

/** JSON that is ready to be sent: a text in `latin1` stands for bytes that are UTF-8 already. */
interface Reply {
  status: number;
  text: string;
  encoding: 'utf8' | 'latin1';
}

const REPLY = Symbol('reply');

type WithReply = Context & { [REPLY]?: Reply };

/** Answers `value` as JSON. The same as setting `ctx.body`, without what Koa does to find out what a body is. */
export function replyJson(ctx: Context, value: object, status = 200): void {
  (ctx as WithReply)[REPLY] = { status, text: JSON.stringify(value), encoding: 'utf8' };
}

/** Answers JSON that has been encoded already, as UTF-8 bytes written one character each. */
export function replyEncodedJson(ctx: Context, text: string, status = 200): void {
  (ctx as WithReply)[REPLY] = { status, text, encoding: 'latin1' };
}

/** Sends what replyJson or replyEncodedJson has settled; leaves every other body to Koa. */
export function sendReply(ctx: Context): void {
  const reply = (ctx as WithReply)[REPLY];
  if (!reply) return;
  const { res } = ctx;
  ctx.respond = false;
  if (res.headersSent || res.destroyed) return;
  res.statusCode = reply.status;
  res.setHeader('Content-Type', 'application/json; charset=utf-8');
  res.setHeader('Content-Length', Buffer.byteLength(reply.text, reply.encoding));
  if (ctx.req.method === 'HEAD') res.end();
  else res.end(reply.text, reply.encoding);
}
