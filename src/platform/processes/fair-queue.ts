import { unavailable, type AppError } from '../../errors.js';
import { waitInLine } from './wait-in-line.js';

export interface FairQueueLimits {
  /** The number that run at once in all, and of one tenant. */
  concurrency: number;
  perTenant: number;
  /** The number that may wait in all, and of one tenant. */
  maxWaiting: number;
  maxWaitingPerTenant: number;
  /** The longest time that somebody waits; then the error below. */
  maxWaitMs?: number;
  /** The error when too many wait: 503 BUSY unless it is given. */
  refusal?: (waiting: number) => AppError;
}

/** Lets few pieces of heavy work run at once, so that no tenant can use up the process. */
export interface FairQueue {
  /**
   * Runs `work` when it is its turn. 503 BUSY with Retry-After when too many wait already; gives its place up when
   * `signal` aborts before.
   */
  inTurn<T>(tenant: string, work: () => Promise<T>, signal?: AbortSignal): Promise<T>;
}

/**
 * Tenants that wait take turns, each in its own order: a tenant with many waiting delays another by one turn at most.
 * Passed over are those that have all the turns they may have.
 */
export function openFairQueue(limits: FairQueueLimits): FairQueue {
  const { refusal = busy } = limits;
  const waiting = new Map<string, (() => void)[]>();
  let waitingCount = 0;
  const running = new Map<string, number>();
  let runningCount = 0;

  const leaveLine = (tenant: string, start: () => void): void => {
    const own = waiting.get(tenant)!;
    own.splice(own.indexOf(start), 1);
    if (own.length === 0) waiting.delete(tenant);
    waitingCount--;
  };

  const startNext = (): void => {
    if (runningCount >= limits.concurrency) return;
    for (const [tenant, [start]] of waiting) {
      const turns = running.get(tenant) ?? 0;
      if (turns >= limits.perTenant) continue;
      leaveLine(tenant, start!);
      const others = waiting.get(tenant);
      // To the end of the line: every tenant gets one turn before any gets its second.
      if (others) {
        waiting.delete(tenant);
        waiting.set(tenant, others);
      }
      runningCount++;
      running.set(tenant, turns + 1);
      start!();
      return;
    }
  };

  const finish = (tenant: string): void => {
    runningCount--;
    const left = running.get(tenant)! - 1;
    if (left === 0) running.delete(tenant);
    else running.set(tenant, left);
    startNext();
  };

  const wait = (tenant: string, signal?: AbortSignal): Promise<void> =>
    waitInLine({ ms: limits.maxWaitMs, tooLong: () => refusal(waitingCount), signal }, (start) => {
      const own = waiting.get(tenant);
      if (own) own.push(start);
      else waiting.set(tenant, [start]);
      waitingCount++;
      startNext();
      return () => leaveLine(tenant, start);
    });

  return {
    async inTurn(tenant, work, signal) {
      const ofTenant = waiting.get(tenant)?.length ?? 0;
      if (waitingCount >= limits.maxWaiting || ofTenant >= limits.maxWaitingPerTenant) throw refusal(waitingCount);
      await wait(tenant, signal);
      try {
        return await work();
      } finally {
        finish(tenant);
      }
    },
  };
}

function busy(): AppError {
  return unavailable('BUSY', 'Too much heavy work is waiting: try again in a moment', { retryAfterSeconds: 1 });
}
