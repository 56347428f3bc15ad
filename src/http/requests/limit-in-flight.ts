import type { Middleware } from 'koa';
import { unavailable } from '../../errors.js';

export interface InFlight {
  /** Requests whose reply is not completely sent. */
  count(): number;
  limit: Middleware;
}

const MONITORING = /^\/(api\/health(\/.*)?|metrics)$/;

/**
 * Lets at most `most` requests be under way, so that a flood costs neither memory nor everybody's time: 503 OVERLOADED
 * beyond it. Health checks and metrics always pass.
 */
export function limitInFlight(most: number): InFlight {
  let count = 0;
  const leave = (): void => void count--;
  return {
    count: () => count,
    limit(ctx, next) {
      if (count >= most && !MONITORING.test(ctx.path)) {
        throw unavailable('OVERLOADED', 'The server has too much to do just now: try again in a moment', {
          retryAfterSeconds: 1,
        });
      }
      count++;
      ctx.res.on('close', leave);
      return next();
    },
  };
}
