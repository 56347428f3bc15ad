import { randomFillSync } from 'node:crypto';
import type { Context } from 'koa';
import type { Preparation } from '../answer-requests.js';
import { addHeaders } from '../replies/reply.js';

const WELL_FORMED = /^[\w.:-]{1,128}$/;
/** Where the random digits of a UUID stand; version and variant are fixed digits of the form. */
const FORM = Buffer.from('xxxxxxxx-xxxx-4xxx-axxx-xxxxxxxxxxxx');
const PLACES = [...FORM.keys()].filter((at) => FORM[at] === 'x'.charCodeAt(0));
const DIGITS = Buffer.from('0123456789abcdef');

const random = Buffer.allocUnsafeSlow(PLACES.length * 128);
let used = random.length;

/** A UUID, written into one text: `randomUUID` joins twenty, which are garbage for each request. */
function newId(): string {
  if (used === random.length) {
    randomFillSync(random);
    used = 0;
  }
  for (const at of PLACES) FORM[at] = DIGITS[random[used++]! & 15]!;
  return FORM.latin1Slice();
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
