import { invalid } from '../../errors.js';
import { DAY_MS } from '../../platform/time/clock.js';
import { text } from '../../platform/schema/schema.js';
import { parameter, type RouteContext } from './route.js';
import type { Context } from 'koa';

/** The time for which a key stands for its first request. */
export const KEY_KEPT_MS = DAY_MS;

const MAX_CHARACTERS = 255;
const FORM = new RegExp(`^[\\x21-\\x7e]{1,${MAX_CHARACTERS}}$`);

/** The header of a route that may be repeated. */
export const IDEMPOTENCY_KEY = {
  'idempotency-key': parameter(
    'Makes the request safe to repeat for 24 hours: with the same key and body it has no further effect',
    text({ minLength: 1, maxLength: MAX_CHARACTERS }),
  ),
};

/**
 * The value of the `Idempotency-Key` header, or null when there is none; 400 INVALID_IDEMPOTENCY_KEY for one that is
 * not 1 to 255 visible ASCII characters.
 */
export function readIdempotencyKey(ctx: RouteContext): string | null {
  const key = sentHeader(ctx, 'idempotency-key');
  if (key === undefined) return null;
  if (!FORM.test(key)) {
    throw invalid('INVALID_IDEMPOTENCY_KEY', `An Idempotency-Key has 1 to ${MAX_CHARACTERS} visible ASCII characters`);
  }
  return key;
}

/**
 * The value of a request's header, undefined when it was not sent. One that was sent empty is '': Koa's `ctx.get` does
 * not tell these apart, and a client that sends a condition without a value did not mean to send none.
 */
export function sentHeader(ctx: Pick<Context, 'req'>, name: 'if-match' | 'idempotency-key'): string | undefined {
  // Node joins repeated ones of these names to one text.
  return ctx.req.headers[name] as string | undefined;
}
