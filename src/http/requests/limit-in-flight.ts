import type { Context, Middleware } from 'koa';
import { unavailable } from '../../errors.js';

export interface InFlight {
  /** Requests whose reply is not completely sent. */
  count(): number;
  limit: Middleware;
}

const ASIDE = Symbol('aside');
type WithAside = Context & { [ASIDE]?: (isAside: boolean) => void };

/** Runs `work` without counting the request among those under way: it holds nothing but a connection meanwhile. */
export async function waitAside<T>(ctx: Context, work: () => Promise<T>): Promise<T> {
  const step = (ctx as WithAside)[ASIDE];
  step?.(true);
  try {
    return await work();
  } finally {
    step?.(false);
  }
}

/** The request counts no longer, however long its reply goes on. */
export function leaveFlight(ctx: Context): void {
  (ctx as WithAside)[ASIDE]?.(true);
}

const MONITORING = /^\/(api\/health(\/.*)?|metrics)$/;

/**
 * Lets at most `most` requests be under way, so that a flood costs neither memory nor everybody's time: 503 OVERLOADED
 * beyond it. Health checks and metrics always pass.
 */
export function limitInFlight(most: number): InFlight {
  let count = 0;
  return {
    count: () => count,
    limit(ctx, next) {
      if (count >= most && !MONITORING.test(ctx.path)) {
        throw unavailable('OVERLOADED', 'The server has too much to do just now: try again in a moment', {
          retryAfterSeconds: 1,
        });
      }
      count++;
      let isCounted = true;
      let isOver = false;
      const settle = (counts: boolean): void => {
        if (counts !== isCounted) count += counts ? 1 : -1;
        isCounted = counts;
      };
      (ctx as WithAside)[ASIDE] = (isAside) => settle(!isAside && !isOver);
      ctx.res.on('close', () => {
        isOver = true;
        settle(false);
      });
      return next();
    },
  };
}
