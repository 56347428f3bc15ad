import type { Context } from 'koa';

/**
 * The value of a request's header, undefined when it was not sent. One that was sent empty is '': Koa's `ctx.get` does
 * not tell these apart, and a client that sends a condition without a value did not mean to send none.
 */
export function sentHeader(ctx: Pick<Context, 'req'>, name: 'if-match' | 'idempotency-key'): string | undefined {
  // Node joins repeated ones of these names to one text.
  return ctx.req.headers[name] as string | undefined;
}
