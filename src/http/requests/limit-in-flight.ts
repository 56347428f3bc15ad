import type { ServerResponse } from 'node:http';
import type { Context, Middleware } from 'koa';
import { abandoned, unavailable } from '../../errors.js';

export interface InFlight {
  /** Requests whose reply is not completely sent. */
  count(): number;
  limit: Middleware;
}

/** Those under way, and those that wait for room. */
class Flights {
  count = 0;
  readonly waiting: (() => void)[] = [];

  constructor(readonly most: number) {}

  change(by: 1 | -1): void {
    this.count += by;
    if (this.count < this.most) this.waiting.shift()?.();
  }
}

/** A request among those under way, until its reply is over or it has left. */
class Flight {
  #isCounted = false;
  #isOver = false;

  constructor(
    private readonly all: Flights,
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
    if (counts === this.#isCounted) return;
    this.#isCounted = counts;
    this.all.change(counts ? 1 : -1);
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

/** How long a request waits for room: many clients at once are over in a moment, a flood is not. */
const MAX_WAIT_MS = 1_000;

/**
 * Lets at most `most` requests be under way, so that a flood costs neither memory nor everybody's time. As many again
 * wait, unread, for a second; the others are told 503 OVERLOADED. Health checks and metrics always pass.
 */
export function limitInFlight(most: number, maxWaitMs = MAX_WAIT_MS): InFlight {
  const all = new Flights(most);
  const begin = (ctx: Context, next: () => Promise<unknown>): Promise<unknown> => {
    (ctx as WithFlight)[FLIGHT] = new Flight(all, ctx.res);
    return next();
  };
  return {
    count: () => all.count,
    limit(ctx, next) {
      const hasRoom = all.count < most && all.waiting.length === 0;
      if (hasRoom || MONITORING.test(ctx.path)) return begin(ctx, next);
      if (all.waiting.length >= most) throw overloaded();
      return waitForRoom(all, ctx.res, maxWaitMs, () => begin(ctx, next));
    },
  };
}

/** Begins `work` as soon as there is room, in the order of coming. */
function waitForRoom<T>(all: Flights, res: ServerResponse, ms: number, work: () => Promise<T>): Promise<T> {
  return new Promise((resolve, reject) => {
    const leaveLine = (): void => {
      clearTimeout(timer);
      res.off('close', goAway);
    };
    const start = (): void => {
      leaveLine();
      resolve(work());
    };
    const giveUp = (error: Error): void => {
      leaveLine();
      all.waiting.splice(all.waiting.indexOf(start), 1);
      reject(error);
    };
    const goAway = (): void => giveUp(abandoned());
    const timer = setTimeout(() => giveUp(overloaded()), ms);
    res.on('close', goAway);
    all.waiting.push(start);
  });
}

const overloaded = (): Error =>
  unavailable('OVERLOADED', 'The server has too much to do just now: try again in a moment', { retryAfterSeconds: 1 });
