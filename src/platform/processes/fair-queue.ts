import { abandoned, unavailable } from '../../errors.js';

export interface FairQueueLimits {
  /** The number that run at once in all, and of one party. */
  concurrency: number;
  perParty: number;
  /** The number that may wait in all, and of one party. */
  maxWaiting: number;
  maxWaitingPerParty: number;
}

/** Lets few pieces of heavy work run at once, so that no party can use up the process. */
export interface FairQueue {
  /**
   * Runs `work` when it is its turn. 503 BUSY with Retry-After when too many wait already; gives its place up when
   * `signal` aborts before.
   */
  inTurn<T>(party: string, work: () => Promise<T>, signal?: AbortSignal): Promise<T>;
}

interface Waiting {
  party: string;
  start: () => void;
}

/** FairQueue are given in the order of asking, passing over parties that have all the turns they may have. */
export function openFairQueue(limits: FairQueueLimits): FairQueue {
  const waiting: Waiting[] = [];
  const running = new Map<string, number>();
  let runningCount = 0;

  const startNext = (): void => {
    if (runningCount >= limits.concurrency) return;
    const at = waiting.findIndex(({ party }) => (running.get(party) ?? 0) < limits.perParty);
    if (at < 0) return;
    const [next] = waiting.splice(at, 1);
    runningCount++;
    running.set(next!.party, (running.get(next!.party) ?? 0) + 1);
    next!.start();
  };

  const finish = (party: string): void => {
    runningCount--;
    const left = running.get(party)! - 1;
    if (left === 0) running.delete(party);
    else running.set(party, left);
    startNext();
  };

  return {
    async inTurn(party, work, signal) {
      const ofParty = waiting.filter((other) => other.party === party).length;
      if (waiting.length >= limits.maxWaiting || ofParty >= limits.maxWaitingPerParty) {
        throw unavailable('BUSY', 'Too much heavy work is waiting: try again in a moment', { retryAfterSeconds: 1 });
      }
      await new Promise<void>((start, refuse) => {
        if (signal?.aborted) {
          refuse(abandoned());
          return;
        }
        const entry: Waiting = {
          party,
          start() {
            signal?.removeEventListener('abort', leave);
            start();
          },
        };
        const leave = (): void => {
          waiting.splice(waiting.indexOf(entry), 1);
          refuse(abandoned());
        };
        signal?.addEventListener('abort', leave, { once: true });
        waiting.push(entry);
        startNext();
      });
      try {
        return await work();
      } finally {
        finish(party);
      }
    },
  };
}
