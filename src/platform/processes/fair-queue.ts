import { abandoned, unavailable, type AppError } from '../../errors.js';

export interface FairQueueLimits {
  /** The number that run at once in all, and of one party. */
  concurrency: number;
  perParty: number;
  /** The number that may wait in all, and of one party. */
  maxWaiting: number;
  maxWaitingPerParty: number;
  /** The error when too many wait: 503 BUSY unless it is given. */
  refusal?: (waiting: number) => AppError;
}

/** Lets few pieces of heavy work run at once, so that no party can use up the process. */
export interface FairQueue {
  /**
   * Runs `work` when it is its turn. 503 BUSY with Retry-After when too many wait already; gives its place up when
   * `signal` aborts before.
   */
  inTurn<T>(party: string, work: () => Promise<T>, signal?: AbortSignal): Promise<T>;
}

/**
 * Parties that wait take turns, each in its own order: a party with many waiting delays another by one turn at most.
 * Passed over are those that have all the turns they may have.
 */
export function openFairQueue(limits: FairQueueLimits): FairQueue {
  const { refusal = busy } = limits;
  const waiting = new Map<string, (() => void)[]>();
  let waitingCount = 0;
  const running = new Map<string, number>();
  let runningCount = 0;

  const leaveLine = (party: string, start: () => void): void => {
    const own = waiting.get(party)!;
    own.splice(own.indexOf(start), 1);
    if (own.length === 0) waiting.delete(party);
    waitingCount--;
  };

  const startNext = (): void => {
    if (runningCount >= limits.concurrency) return;
    for (const [party, [start]] of waiting) {
      const turns = running.get(party) ?? 0;
      if (turns >= limits.perParty) continue;
      leaveLine(party, start!);
      const others = waiting.get(party);
      // To the end of the line: every party gets one turn before any gets its second.
      if (others) {
        waiting.delete(party);
        waiting.set(party, others);
      }
      runningCount++;
      running.set(party, turns + 1);
      start!();
      return;
    }
  };

  const finish = (party: string): void => {
    runningCount--;
    const left = running.get(party)! - 1;
    if (left === 0) running.delete(party);
    else running.set(party, left);
    startNext();
  };

  const wait = (party: string, signal?: AbortSignal): Promise<void> =>
    new Promise((resolve, refuse) => {
      if (signal?.aborted) {
        refuse(abandoned());
        return;
      }
      const start = (): void => {
        signal?.removeEventListener('abort', leave);
        resolve();
      };
      const leave = (): void => {
        leaveLine(party, start);
        refuse(abandoned());
      };
      signal?.addEventListener('abort', leave, { once: true });
      const own = waiting.get(party);
      if (own) own.push(start);
      else waiting.set(party, [start]);
      waitingCount++;
      startNext();
    });

  return {
    async inTurn(party, work, signal) {
      const ofParty = waiting.get(party)?.length ?? 0;
      if (waitingCount >= limits.maxWaiting || ofParty >= limits.maxWaitingPerParty) throw refusal(waitingCount);
      await wait(party, signal);
      try {
        return await work();
      } finally {
        finish(party);
      }
    },
  };
}

function busy(): AppError {
  return unavailable('BUSY', 'Too much heavy work is waiting: try again in a moment', { retryAfterSeconds: 1 });
}
