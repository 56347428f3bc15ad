import type { UpdateFilter } from 'mongodb';
import { DAY_MS, CLOCK_DOUBT_MS } from '../time/clock.js';
import { retryDelay, jobStore, type AnyJobDefinition, type JobRecord, type RunAgain } from './job.js';
import type { JobDependencies } from './job-queue.js';
import { withSpan, type SpanOptions } from '../observe/telemetry.js';

/** Dead jobs are kept this long for inspection. */
export const DEAD_JOB_DAYS = 30;
const MAX_ERROR_CHARACTERS = 2_000;

/** Matches the job only while this very lease stands: a worker that lost it changes nothing. */
function heldBy({ _id, fence }: JobRecord): Pick<JobRecord, '_id' | 'fence' | 'state'> {
  return { _id, fence, state: 'running' };
}

const RELEASED = { workerId: '', leaseUntil: '' } as const;

/**
 * Ends a run that worked: the job is gone, kept as done, or waits for its next run. False when the lease was lost:
 * the completion comes too late and is refused.
 */
async function completeJob(deps: JobDependencies, job: JobRecord, again: RunAgain | null): Promise<boolean> {
  // The write holds only while `againAt` is as seen; it can be set at any time by an enqueue that must not be missed.
  let seen: Date | null = null;
  // It was leased before: what was about to happen may not have been there yet.
  const last = job.lastAt && job.lastAt > job.updatedAt ? job.lastAt : null;
  for (;;) {
    const unchanged = { ...heldBy(job), againAt: seen ?? { $exists: false } };
    const next = earliest(earliest(seen, last), again?.again ?? null);
    const attempts = again?.putOff && !seen ? job.attempts - 1 : 0;
    if (next ? await requeue(deps, unchanged, next, attempts) : await finish(deps, unchanged, job.keepMs)) return true;
    const current = await jobStore(deps).findOne(heldBy(job));
    if (!current) return false;
    seen = current.againAt ?? null;
  }
}

async function finish(deps: JobDependencies, filter: object, keepMs: number | undefined): Promise<boolean> {
  if (keepMs === undefined) return (await jobStore(deps).deleteOne(filter)).deletedCount > 0;
  const nowMs = deps.clock.now();
  const done = { state: 'done', updatedAt: new Date(nowMs), expireAt: new Date(nowMs + keepMs) } as const;
  const result = await jobStore(deps).updateOne(filter, { $set: done, $unset: { ...RELEASED, heldLane: '' } });
  return result.matchedCount > 0;
}

async function requeue(deps: JobDependencies, filter: object, runAt: Date, attempts: number): Promise<boolean> {
  const result = await jobStore(deps).updateOne(filter, {
    $set: { state: 'queued', runAt, attempts, updatedAt: new Date(deps.clock.now()) },
    $unset: { ...RELEASED, heldLane: '', againAt: '', error: '' },
  });
  return result.matchedCount > 0;
}

function earliest(a: Date | null, b: Date | null): Date | null {
  if (!a || !b) return a ?? b;
  return a < b ? a : b;
}

/** The fate of a failed job; `lost` when another worker had taken the lease before. */
type FailureOutcome = 'retried' | 'dead' | 'lost';

/** Ends a run that failed: the job waits for its next try, keeping its lane, or is dead and lets go of lane and key. */
async function failJob(
  deps: JobDependencies,
  definition: AnyJobDefinition<never>,
  job: JobRecord,
  cause: unknown,
): Promise<FailureOutcome> {
  const nowMs = deps.clock.now();
  const isFinal = definition.isFinal?.(cause) === true;
  const delay = isFinal ? null : retryDelay(definition.retry, job.attempts, Math.random());
  const error = cause instanceof Error ? cause.message : String(cause);
  const common = { error: error.slice(0, MAX_ERROR_CHARACTERS), updatedAt: new Date(nowMs) };
  const change: UpdateFilter<JobRecord> =
    delay === null
      ? {
          $set: { ...common, state: 'dead', expireAt: new Date(nowMs + DEAD_JOB_DAYS * DAY_MS) },
          $unset: { ...RELEASED, heldLane: '', againAt: '', uniqueKey: '' },
        }
      : {
          $set: { ...common, state: 'queued', runAt: new Date(nowMs + delay) },
          $unset: { ...RELEASED, againAt: '' },
        };
  const result = await jobStore(deps).updateOne(heldBy(job), change);
  if (result.matchedCount === 0) return 'lost';
  return delay === null ? 'dead' : 'retried';
}

/** Gives a job back untouched, for any worker to take at once: the try that did not end is not counted. */
async function handBackJob(deps: JobDependencies, job: JobRecord): Promise<void> {
  await jobStore(deps).updateOne(heldBy(job), {
    $set: { state: 'queued', updatedAt: new Date(deps.clock.now()) },
    $inc: { attempts: -1 },
    $unset: RELEASED,
  });
}

/** The heartbeat of a running job; false if another process has taken it back. */
export async function extendLease(deps: JobDependencies, job: JobRecord, leaseMs: number): Promise<boolean> {
  const leaseUntil = new Date(deps.clock.now() + leaseMs);
  return (await jobStore(deps).updateOne(heldBy(job), { $set: { leaseUntil } })).matchedCount > 0;
}

const MAX_WATCHED = 200;
/** What jobs are asked for before it happens has happened by then. */
const HAPPENED_MS = 60_000;

/**
 * After the clock was set back: what was noted by the time before would be waited for once more. Leases from there end
 * after `leaseMs`, unless their workers renew them; jobs that were put off there wait as long as they were put off,
 * from now on; the last moments for which they were asked are a minute off. How many jobs were changed.
 */
export async function bringBackJobs(deps: JobDependencies, leaseMs: number): Promise<number> {
  const nowMs = deps.clock.now();
  const doubted = new Date(nowMs + CLOCK_DOUBT_MS);
  const leased = await jobStore(deps).updateMany(
    { state: 'running', leaseUntil: { $gt: doubted } },
    {
      $set: { leaseUntil: new Date(nowMs + leaseMs) },
    },
  );
  const now = new Date(nowMs);
  const putOff = { $max: [0, { $subtract: ['$runAt', '$updatedAt'] }] };
  const queued = await jobStore(deps).updateMany({ state: 'queued', updatedAt: { $gt: doubted } }, [
    { $set: { runAt: { $add: [now, putOff] }, updatedAt: now } },
  ]);
  await jobStore(deps).updateMany({ lastAt: { $gt: doubted } }, { $set: { lastAt: new Date(nowMs + HAPPENED_MS) } });
  return leased.modifiedCount + queued.modifiedCount;
}

/** Running jobs of these kinds whose lease was to be renewed by now, those first whose lease ends first. */
export function findOverdueJobs(
  deps: JobDependencies,
  names: readonly string[],
  leaseMs: number,
): Promise<JobRecord[]> {
  const renewedBy = new Date(deps.clock.now() + (leaseMs * 2) / 3);
  return jobStore(deps)
    .find({ state: 'running', leaseUntil: { $lt: renewedBy }, name: { $in: [...names] } })
    .sort({ leaseUntil: 1 })
    .limit(MAX_WATCHED)
    .toArray();
}

/** Takes back a job whose worker stopped answering; the lost run counts as a failed one. */
export async function reclaimJob(
  deps: JobDependencies,
  definition: AnyJobDefinition<never>,
  job: JobRecord,
): Promise<void> {
  const outcome = await failJob(deps, definition, job, 'The worker stopped answering.');
  if (outcome === 'lost') return;
  deps.log.warn(
    { job: job.name, jobId: job._id.toHexString(), attempt: job.attempts, outcome },
    'a worker stopped answering; its job was taken back',
  );
}

/** A leased job under way in this process. */
export interface JobRun {
  job: JobRecord;
  /** Resolves, never rejects, when the job is complete or was handed to another process. */
  ended: Promise<void>;
  /**
   * Gives the job back to the queue and lets the run know that what it still does will be refused. Never rejects: a job
   * that cannot be given back is taken back when its lease is over.
   */
  handBack(): Promise<void>;
}

/** Runs a leased job, keeps its lease alive until it ends, and settles it. */
export function startJob<Deps extends JobDependencies>(
  deps: Deps,
  definition: AnyJobDefinition<Deps>,
  job: JobRecord,
  leaseMs: number,
  stopping: AbortSignal,
): JobRun {
  const lost = new AbortController();
  const log = deps.log.child({ job: job.name, jobId: job._id.toHexString(), attempt: job.attempts });

  const renewLease = async (): Promise<void> => {
    try {
      if (await extendLease(deps, job, leaseMs)) return;
      log.warn('the lease was lost while the job was running');
      lost.abort();
    } catch (error) {
      log.warn({ err: error }, 'the lease could not be extended');
    }
  };
  const heartbeat = setInterval(() => void renewLease(), leaseMs / 3);

  const run = async (): Promise<void> => {
    try {
      const context = { jobId: job._id, attempt: job.attempts, fence: job.fence, signal: lost.signal, stopping };
      const result = await withSpan(deps.telemetry, `job ${job.name}`, describeRun(job), () =>
        definition.run(deps, job.payload, context),
      );
      if (!(await completeJob(deps, job, result ?? null)) && !lost.signal.aborted) {
        log.warn('the job ended after its lease was lost: the completion is refused');
      }
    } catch (error) {
      if (lost.signal.aborted) return;
      const outcome = await failJob(deps, definition, job, error);
      if (outcome === 'dead') log.error({ err: error }, 'the job failed for the last time');
      else log.warn({ err: error, outcome }, 'the job failed');
    }
  };
  const ended = run()
    // The database is away: the lease runs out and the job is taken back.
    .catch((error: unknown) => log.error({ err: error }, 'the job could not be settled'))
    .finally(() => clearInterval(heartbeat));

  return {
    job,
    ended,
    async handBack() {
      clearInterval(heartbeat);
      await handBackJob(deps, job).catch((error: unknown) =>
        log.warn({ err: error }, 'the job could not be handed back'),
      );
      lost.abort();
    },
  };
}

function describeRun({ name, _id, attempts }: JobRecord): SpanOptions {
  return {
    kind: 'consumer',
    attributes: { 'bsvc.job.name': name, 'bsvc.job.id': _id.toHexString(), 'bsvc.job.attempt': attempts },
  };
}
