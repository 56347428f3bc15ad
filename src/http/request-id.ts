import { randomUUID } from 'node:crypto';
import type { Middleware } from 'koa';

const WELL_FORMED = /^[\w.:-]{1,128}$/;

/** Gives every request an id (`ctx.state.requestId`, header `x-request-id`); a well-formed incoming one is kept. */
export function requestId(): Middleware {
  return (ctx, next) => {
    const given = ctx.get('x-request-id');
    const id = WELL_FORMED.test(given) ? given : randomUUID();
    ctx.state.requestId = id;
    ctx.set('x-request-id', id);
    return next();
  };
}
