import type { AnyJobDefinition } from './job.js';
import type { JobDependencies } from './job-queue.js';
import { bringBackJobs, findOverdueJobs, reclaimJob } from './complete-job.js';

/** Smaller corrections of the clock are daily business. */
const CLOCK_STEP_MS = 1_000;

export interface LeaseWatch {
  /**
   * Takes back jobs whose workers are gone: whose lease is over, and was not renewed for `patienceMs` while this worker
   * watched, by a timer that no clock moves. A lease alone is a moment by its holder's clock, and says nothing when
   * either clock was moved or is wrong.
   */
  takeBack(patienceMs: number): Promise<void>;
  /** Makes the next call look at all leases, as the first one does. */
  forget(): void;
}

/** Watches the leases of all jobs of the given kinds, by whichever worker they are held. */
export function openLeaseWatch<Deps extends JobDependencies>(
  deps: Deps,
  kinds: ReadonlyMap<string, AnyJobDefinition<Deps>>,
  leaseMs: number,
): LeaseWatch {
  /** The clock and the time since the process began, at the last look; null before the first. */
  let seen: { clockMs: number; tickMs: number } | null = null;
  /** Leases that were due to be renewed when last looked at, with the moment since which they are. */
  let overdue = new Map<string, number>();
  let nextLookMs = 0;
  return {
    async takeBack(patienceMs) {
      const [clockMs, tickMs] = [deps.clock.now(), performance.now()];
      const setBack = seen !== null && clockMs - seen.clockMs < tickMs - seen.tickMs - CLOCK_STEP_MS;
      if (setBack || !seen) await bringBackJobs(deps, leaseMs);
      seen = { clockMs, tickMs };
      if (tickMs < nextLookMs) return;
      nextLookMs = tickMs + leaseMs / 3;
      const before = overdue;
      overdue = new Map();
      for (const job of await findOverdueJobs(deps, [...kinds.keys()], leaseMs)) {
        const lease = `${job._id.toHexString()} ${job.fence} ${job.leaseUntil!.getTime()}`;
        const sinceMs = before.get(lease) ?? tickMs;
        const isOver = job.leaseUntil!.getTime() < clockMs && tickMs - sinceMs >= patienceMs;
        if (isOver) await reclaimJob(deps, kinds.get(job.name)!, job);
        else overdue.set(lease, sinceMs);
      }
    },
    forget() {
      [seen, nextLookMs] = [null, 0];
    },
  };
}
