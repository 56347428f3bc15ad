import type { ServerResponse } from 'node:http';
import type { Context, Middleware } from 'koa';
import { unavailable } from '../../errors.js';

export interface InFlight {
  /** Requests whose reply is not completely sent. */
  count(): number;
  limit: Middleware;
}

/** A request among those under way, until its reply is over or it has left. */
class Flight {
  #isCounted = false;
  #isOver = false;

  constructor(
    private readonly all: { count: number },
    private readonly res: ServerResponse,
  ) {
    this.#settle(true);
    res.on('close', this.#end);
  }

  setAside(isAside: boolean): void {
    this.#settle(!isAside && !this.#isOver);
  }

  /** Counts the request no longer; the reply holds nothing of it. */
  leave(): void {
    this.#end();
    this.res.off('close', this.#end);
  }

  readonly #end = (): void => {
    this.#isOver = true;
    this.#settle(false);
  };

  #settle(counts: boolean): void {
    if (counts !== this.#isCounted) this.all.count += counts ? 1 : -1;
    this.#isCounted = counts;
  }
}

const FLIGHT = Symbol('flight');
type WithFlight = Context & { [FLIGHT]?: Flight };

/** Runs `work` without counting the request among those under way: it holds nothing but a connection meanwhile. */
export async function waitAside<T>(ctx: Context, work: () => Promise<T>): Promise<T> {
  const flight = (ctx as WithFlight)[FLIGHT];
  flight?.setAside(true);
  try {
    return await work();
  } finally {
    flight?.setAside(false);
  }
}

/** The request counts no longer, however long its reply goes on. */
export function leaveFlight(ctx: Context): void {
  (ctx as WithFlight)[FLIGHT]?.leave();
}

const MONITORING = /^\/(api\/health(\/.*)?|metrics)$/;

/**
 * Lets at most `most` requests be under way, so that a flood costs neither memory nor everybody's time: 503 OVERLOADED
 * beyond it. Health checks and metrics always pass.
 */
export function limitInFlight(most: number): InFlight {
  const all = { count: 0 };
  return {
    count: () => all.count,
    limit(ctx, next) {
      if (all.count >= most && !MONITORING.test(ctx.path)) {
        throw unavailable('OVERLOADED', 'The server has too much to do just now: try again in a moment', {
          retryAfterSeconds: 1,
        });
      }
      (ctx as WithFlight)[FLIGHT] = new Flight(all, ctx.res);
      return next();
    },
  };
}
