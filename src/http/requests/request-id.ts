import { randomUUID } from 'node:crypto';
import type { Context } from 'koa';
import type { Preparation } from '../answer-requests.js';
import { addHeaders } from '../replies/reply.js';

const WELL_FORMED = /^[\w.:-]{1,128}$/;

/** Gives every request an id (`ctx.state.requestId`, header `x-request-id`); a well-formed incoming one is kept. */
export function requestId(): Preparation {
  return (ctx) => {
    const given = ctx.req.headers['x-request-id'];
    const id = typeof given === 'string' && WELL_FORMED.test(given) ? given : randomUUID();
    ctx.state.requestId = id;
    addHeaders(ctx, `x-request-id: ${id}\r\n`);
  };
}

export function requestIdOf({ state }: Pick<Context, 'state'>): string {
  return (state as { requestId: string }).requestId;
}
