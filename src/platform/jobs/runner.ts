import type { AnyJobDefinition } from './job.js';
import type { JobDependencies } from './job-queue.js';
import { bringBackJobs, findOverdueJobs, reclaimJob, startJob, type JobRun } from './complete-job.js';
import { isRestoring } from '../database/restore-mark.js';
import { randomToken } from '../ids.js';
import { withTimeout } from '../time/with-timeout.js';
import { openJobPools } from './claim-jobs.js';

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
  /** The clock at the last look; before the first, as if it had gone back since. */
  let seenMs = Infinity;
  /** Leases that were due to be renewed when last looked at, with the moment since which they are. */
  let overdue = new Map<string, number>();
  let nextLookMs = 0;
  return {
    async takeBack(patienceMs) {
      const [clockMs, tickMs] = [deps.clock.now(), performance.now()];
      if (clockMs < seenMs) await bringBackJobs(deps, leaseMs);
      seenMs = clockMs;
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
      [seenMs, nextLookMs] = [Infinity, 0];
    },
  };
}

export interface RunnerOptions {
  /** The number of jobs of the shared pool that run at once. */
  concurrency: number;
  /** A worker without a sign of life for this time loses its jobs. */
  leaseMs?: number;
  /** Longest pause between two looks at an empty queue. */
  idleMs?: number;
}

export interface Runner {
  /** Looks for work and runs it until stopped. */
  start(): void;
  /**
   * Runs what is due now, and what that makes due, until nothing is left; for tests with a clock of their own. How many
   * runs there were.
   */
  drain(): Promise<number>;
  /**
   * Takes no new work, lets what is under way end for at most `graceMs`, then hands the rest back. Safe to call twice.
   */
  stop(graceMs: number): Promise<void>;
}

const LEASE_MS = 15_000;
const FIRST_PAUSE_MS = 20;
const GATHER_MS = 3;
const IDLE_MS = 1_000;

/** Runs the jobs of the given kinds. Any number of runners, in any number of processes, share one queue. */
export function openRunner<Deps extends JobDependencies>(
  deps: Deps,
  definitions: readonly AnyJobDefinition<Deps>[],
  { concurrency, leaseMs = LEASE_MS, idleMs = IDLE_MS }: RunnerOptions,
): Runner {
  const kinds = new Map(definitions.map((definition) => [definition.name, definition]));
  const leases = openLeaseWatch(deps, kinds, leaseMs);
  const stopping = new AbortController();
  const rest = openRest();
  const pools = openJobPools(deps, {
    definitions,
    concurrency,
    workerId: `${process.pid}-${randomToken(6)}`,
    leaseMs,
    begin: (job) => startJob(deps, kinds.get(job.name)!, job, leaseMs, stopping.signal),
    onEnd: () => rest.end(),
  });
  /** One look at the queue: the jobs that were started. */
  const look = async (patienceMs: number): Promise<JobRun[]> => {
    if (await isRestoring(deps.db)) return [];
    await leases.takeBack(patienceMs);
    return pools.fill();
  };
  const claim = async (): Promise<boolean> => (await look((leaseMs * 2) / 3)).length > 0;
  let looping: Promise<void> | null = null;
  let stopped: Promise<void> | null = null;
  const finish = async (graceMs: number): Promise<void> => {
    stopping.abort();
    rest.end();
    await looping;
    await withTimeout(Promise.all(pools.underWay().map((run) => run.ended)), graceMs, null);
    await Promise.all(pools.underWay().map((run) => run.handBack()));
  };
  return {
    start() {
      if (looping || stopping.signal.aborted) return;
      const unsubscribe = deps.jobs.onWake(() => rest.end());
      looping = claimLoop(deps, claim, rest, idleMs, stopping.signal).finally(unsubscribe);
    },
    async drain() {
      let count = 0;
      for (;;) {
        leases.forget();
        const started = await look(0);
        if (started.length === 0) return count;
        count += started.length;
        await Promise.all(started.map((run) => run.ended));
      }
    },
    stop: (graceMs) => (stopped ??= finish(graceMs)),
  };
}

/** Looks for work until stopped; the pauses grow to `idleMs` while there is none. */
async function claimLoop(
  deps: JobDependencies,
  claim: () => Promise<boolean>,
  rest: Rest,
  idleMs: number,
  stopping: AbortSignal,
): Promise<void> {
  let pause = FIRST_PAUSE_MS;
  while (!stopping.aborted) {
    // Begun before looking, so that a wake-up during the look is not slept through.
    rest.begin();
    let busy = false;
    try {
      busy = await claim();
      pause = busy ? FIRST_PAUSE_MS : Math.min(pause * 2, idleMs);
    } catch (error) {
      pause = idleMs;
      deps.log.error({ err: error }, 'the job queue could not be read');
    }
    if (stopping.aborted) break;
    await rest.wait(pause * (0.75 + Math.random() / 2));
    // With a full queue, jobs that end within a moment of each other are followed by one look, not by one each.
    if (busy) await new Promise((resolve) => setTimeout(resolve, GATHER_MS));
  }
}

/** Pauses that can be cut short before or while they last. */
interface Rest {
  begin(): void;
  end(): void;
  wait(ms: number): Promise<void>;
}

function openRest(): Rest {
  let end: () => void = () => undefined;
  let ended: Promise<void> = Promise.resolve();
  return {
    begin() {
      ended = new Promise((resolve) => (end = resolve));
    },
    end: () => end(),
    wait: (ms) => withTimeout(ended, ms, undefined),
  };
}
