import { randomFillSync } from 'node:crypto';
import type { Context } from 'koa';
import type { Preparation } from '../answer-requests.js';
import { addHeaders } from '../replies/reply.js';

const WELL_FORMED = /^[\w.:-]{1,128}$/;
const ID_BYTES = 16;

const random = Buffer.allocUnsafeSlow(ID_BYTES * 256);
let used = random.length;

/** 32 hexadecimal digits. `randomUUID` joins its text of some twenty, which are garbage for each request. */
function newId(): string {
  if (used === random.length) {
    randomFillSync(random);
    used = 0;
  }
  return random.toString('hex', used, (used += ID_BYTES));
}

/** Gives every request an id (`ctx.state.requestId`, header `x-request-id`); a well-formed incoming one is kept. */
export function requestId(): Preparation {
  return (ctx) => {
    const given = ctx.req.headers['x-request-id'];
    const id = typeof given === 'string' && WELL_FORMED.test(given) ? given : newId();
    ctx.state.requestId = id;
    addHeaders(ctx, `x-request-id: ${id}\r\n`);
  };
}

export function requestIdOf({ state }: Pick<Context, 'state'>): string {
  return (state as { requestId: string }).requestId;
}
