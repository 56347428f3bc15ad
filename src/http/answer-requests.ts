import type { Context, Middleware } from 'koa';
import type { Logger } from '../platform/observe/logger.js';
import { leaveBody } from './requests/counted-request.js';
import { detachBody } from './requests/read-bytes.js';
import { sendReply, type CountHeld, type TenantOf } from './replies/reply.js';
import { writeError } from './replies/write-errors.js';

/** Sets something on a request before anything can fail; neither asynchronous nor able to refuse. */
export type Preparation = (ctx: Context) => void;

/** Called for every request when its answer is settled, with the milliseconds that took. */
export type Observer = (ctx: Context, ms: number) => void;

interface Steps {
  prepare: readonly Preparation[];
  observe: readonly Observer[];
  log: Logger;
  countHeld?: CountHeld;
  tenantOf?: TenantOf;
}

/**
 * The frame of every request, one asynchronous function instead of one for each concern: preparations, then the rest,
 * then its error or its reply, then the observers.
 */
export function answerRequests({ prepare, observe, log, countHeld, tenantOf }: Steps): Middleware {
  const finish = (ctx: Context): void => {
    detachBody(ctx);
    if (!ctx.req.complete) leaveBody(ctx);
    sendReply(ctx, countHeld, tenantOf);
  };
  return async (ctx, next) => {
    const startedMs = performance.now();
    for (const step of prepare) step(ctx);
    try {
      await next();
      finish(ctx);
    } catch (error) {
      writeError(ctx, error, log);
      finish(ctx);
    }
    const ms = performance.now() - startedMs;
    for (const observer of observe) observer(ctx, ms);
  };
}
