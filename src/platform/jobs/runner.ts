import { isRestoring } from '../database/restore-mark.js';
import { randomToken } from '../ids.js';
import { withTimeout } from '../time/with-timeout.js';
import { claimInTurn, claimJobs, hasDueJobs, type ClaimRequest } from './claim-jobs.js';
import { poolOf, SHARED_POOL, type AnyJobDefinition, type JobRecord } from './job.js';
import type { JobDependencies } from './job-queue.js';
import { startJob, type JobRun } from './run-job.js';
import { bringBackJobs, findOverdueJobs, reclaimJob } from './settle-job.js';

export interface RunnerOptions {
  /** The number of jobs of the shared pool that run at once. */
  concurrency: number;
  /** A worker that has not been heard of for so long loses its jobs. */
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
/** Smaller corrections of the clock are daily business. */
const CLOCK_STEP_MS = 1_000;

/** Runs the jobs of the given kinds. Any number of runners, in any number of processes, share one queue. */
export function openRunner<Deps extends JobDependencies>(
  deps: Deps,
  definitions: readonly AnyJobDefinition<Deps>[],
  { concurrency, leaseMs = LEASE_MS, idleMs = IDLE_MS }: RunnerOptions,
): Runner {
  const byName = new Map(definitions.map((definition) => [definition.name, definition]));
  const pools = listPools(definitions, concurrency);
  const workerId = `${process.pid}-${randomToken(6)}`;
  const running = new Map<string, Set<JobRun>>(pools.map(({ pool }) => [pool, new Set()]));
  const stopping = new AbortController();
  /** The clock and the time since the process began, at the last look; null before the first. */
  let seen: { clockMs: number; tickMs: number } | null = null;
  /** Leases that were due to be renewed when last looked at, with the moment since which they are. */
  let overdue = new Map<string, number>();
  let watchAt = 0;
  let crowded = false;
  let looping: Promise<void> | null = null;
  let stopped: Promise<void> | null = null;
  let rest = restUntilCalled();

  const begin = (pool: string, job: JobRecord): JobRun => {
    const runs = running.get(pool)!;
    const run = startJob(deps, byName.get(job.name)!, job, leaseMs, stopping.signal);
    runs.add(run);
    void run.ended.then(() => {
      runs.delete(run);
      rest.end();
    });
    return run;
  };

  /**
   * Takes back jobs whose workers are gone: whose lease is over, and was not renewed for `patienceMs` while this worker
   * watched, by a timer that no clock moves. A lease alone is a moment by its holder's clock, and says nothing when
   * either clock was moved or is wrong.
   */
  const takeBack = async (patienceMs: number): Promise<void> => {
    const [clockMs, tickMs] = [deps.clock.now(), performance.now()];
    const setBack = seen !== null && clockMs - seen.clockMs < tickMs - seen.tickMs - CLOCK_STEP_MS;
    if (setBack || !seen) await bringBackJobs(deps, leaseMs);
    seen = { clockMs, tickMs };
    if (tickMs < watchAt) return;
    watchAt = tickMs + leaseMs / 3;
    const before = overdue;
    overdue = new Map();
    for (const job of await findOverdueJobs(deps, [...byName.keys()], leaseMs)) {
      const lease = `${job._id.toHexString()} ${job.fence} ${job.leaseUntil!.getTime()}`;
      const sinceMs = before.get(lease) ?? tickMs;
      const isOver = job.leaseUntil!.getTime() < clockMs && tickMs - sinceMs >= patienceMs;
      if (isOver) await reclaimJob(deps, byName.get(job.name)!, job);
      else overdue.set(lease, sinceMs);
    }
  };

  /** One look at the queue: how many jobs were started. */
  const look = async (patienceMs: number): Promise<JobRun[]> => {
    if (await isRestoring(deps.db)) return [];
    await takeBack(patienceMs);
    const started: JobRun[] = [];
    const open = pools.filter(({ pool, most }) => running.get(pool)!.size < most);
    const due = await hasDueJobs(
      deps,
      open.map(({ pool }) => pool),
    );
    if (!due) return started;
    for (const { pool, names, most, perParty } of open) {
      const limit = most - running.get(pool)!.size;
      const request = { workerId, pool, names, leaseMs, limit, crowded };
      const start = (job: JobRecord): void => void started.push(begin(pool, job));
      if (perParty === undefined) crowded = await claimJobs(deps, request, start);
      else await fillInTurn(request, perParty, start);
    }
    return started;
  };

  /** The party that was served last, by pool. */
  const served = new Map<string, string>();
  const fillInTurn = async (
    request: ClaimRequest,
    perParty: number,
    start: (job: JobRecord) => void,
  ): Promise<void> => {
    for (let left = request.limit; left > 0; left--) {
      const counts = new Map<string, number>();
      for (const { job } of running.get(request.pool)!) counts.set(job.party!, (counts.get(job.party!) ?? 0) + 1);
      const full = new Set([...counts].filter(([, count]) => count >= perParty).map(([party]) => party));
      const party = await claimInTurn(deps, request, { after: served.get(request.pool) ?? '', full }, start);
      if (party === null) return;
      served.set(request.pool, party);
    }
  };

  const loop = async (): Promise<void> => {
    let pause = FIRST_PAUSE_MS;
    while (!stopping.signal.aborted) {
      // Made before looking, so that a wake-up during the look is not slept through.
      rest = restUntilCalled();
      let busy = false;
      try {
        busy = (await look((leaseMs * 2) / 3)).length > 0;
        pause = busy ? FIRST_PAUSE_MS : Math.min(pause * 2, idleMs);
      } catch (error) {
        pause = idleMs;
        deps.log.error({ err: error }, 'the job queue could not be read');
      }
      if (stopping.signal.aborted) break;
      await rest.for(pause * (0.75 + Math.random() / 2));
      // With a full queue, jobs that end within a moment of each other are followed by one look, not by one each.
      if (busy) await new Promise((resolve) => setTimeout(resolve, GATHER_MS));
    }
  };

  const underWay = (): JobRun[] => [...running.values()].flatMap((runs) => [...runs]);

  const finish = async (graceMs: number): Promise<void> => {
    stopping.abort();
    rest.end();
    await looping;
    await withTimeout(Promise.all(underWay().map((run) => run.ended)), graceMs, null);
    await Promise.all(underWay().map((run) => run.handBack()));
  };

  return {
    start() {
      if (looping || stopping.signal.aborted) return;
      const unsubscribe = deps.jobs.onWake(() => rest.end());
      looping = loop().finally(unsubscribe);
    },
    async drain() {
      let count = 0;
      for (;;) {
        [seen, watchAt] = [null, 0];
        const started = await look(0);
        if (started.length === 0) return count;
        count += started.length;
        await Promise.all(started.map((run) => run.ended));
      }
    },
    stop: (graceMs) => (stopped ??= finish(graceMs)),
  };
}

interface Pool {
  pool: string;
  names: string[];
  most: number;
  perParty: number | undefined;
}

function listPools(definitions: readonly AnyJobDefinition<never>[], concurrency: number): Pool[] {
  const pools = new Map<string, Pool>();
  for (const definition of definitions) {
    const pool = poolOf(definition);
    const most = pool === SHARED_POOL ? concurrency : definition.concurrency!;
    const known = pools.get(pool) ?? { pool, names: [], most, perParty: definition.perParty };
    known.names.push(definition.name);
    pools.set(pool, known);
  }
  return [...pools.values()];
}

/** A pause that can be cut short before or while it lasts. */
function restUntilCalled(): { end(): void; for(ms: number): Promise<void> } {
  let end!: () => void;
  const called = new Promise<void>((resolve) => (end = resolve));
  return { end, for: (ms) => withTimeout(called, ms, undefined) };
}
