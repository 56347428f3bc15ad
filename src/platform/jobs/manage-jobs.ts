import { missing } from '../../errors.js';
import { findObjectId } from '../ids.js';
import { jobStore, type JobRecord, type JobDefinition } from './job.js';
import type { JobDependencies } from './job-queue.js';
import { isClockSteady } from '../database/clock-drift.js';

export type JobState = JobRecord['state'];
export const JOB_STATES: readonly JobState[] = ['queued', 'running', 'dead', 'done'];

export interface JobQuery {
  state?: JobState;
  name?: string;
  limit?: number;
}

const DEFAULT_LIMIT = 100;

/**
 * The jobs with that state and name, those that run soonest first; without a state those that are not done. Schedules
 * leave many that are: the latest of them come first.
 */
export function listJobs(
  deps: JobDependencies,
  { state, name, limit = DEFAULT_LIMIT }: JobQuery,
): Promise<JobRecord[]> {
  return jobStore(deps)
    .find({ state: state ?? { $ne: 'done' }, ...(name && { name }) })
    .sort(state === 'done' ? { runAt: -1, _id: -1 } : { runAt: 1, _id: 1 })
    .limit(limit)
    .toArray();
}

/**
 * Makes a dead job, or one that waits for a later moment, due at once with its attempts counted again. 404 for any
 * other id.
 */
export async function retryJob(deps: JobDependencies, id: string): Promise<JobRecord> {
  const _id = findObjectId(id);
  const job = _id && (await jobStore(deps).findOneAndUpdate({ _id, ...RETRIABLE }, requeued(deps), AFTER));
  if (!job) throw missing('JOB_NOT_FOUND', `There is no failed or waiting job ${id}`);
  deps.jobs.wake();
  return job;
}

/** Retries all dead jobs, of one name if given; returns their number. */
export async function retryDeadJobs(deps: JobDependencies, name?: string): Promise<number> {
  const result = await jobStore(deps).updateMany({ state: 'dead', ...(name && { name }) }, requeued(deps));
  deps.jobs.wake();
  return result.modifiedCount;
}

const AFTER = { returnDocument: 'after' } as const;
const RETRIABLE = { state: { $in: ['dead', 'queued'] satisfies JobState[] } };

function requeued(deps: JobDependencies): { $set: Partial<JobRecord>; $unset: Record<string, ''> } {
  const now = new Date(deps.clock.now());
  return { $set: { state: 'queued', runAt: now, attempts: 0, updatedAt: now }, $unset: { expireAt: '' } };
}

/** Removes finished and dead jobs whose time of being kept is over. How many. */
export async function removeExpiredJobs(deps: JobDependencies): Promise<number> {
  return (await jobStore(deps).deleteMany({ expireAt: { $lte: new Date(deps.clock.now()) } })).deletedCount;
}

/** A job as people see it. */
export function presentJob(job: JobRecord) {
  return {
    id: job._id.toHexString(),
    name: job.name,
    state: job.state,
    attempts: job.attempts,
    runAt: job.runAt.toISOString(),
    payload: job.payload,
    error: job.error ?? null,
    createdAt: job.createdAt.toISOString(),
    updatedAt: job.updatedAt.toISOString(),
  };
}

export const removeExpiredJobsJob: JobDefinition<JobDependencies> = {
  name: 'jobs.removeExpired',
  retry: { delaysMs: [60_000] },
  async run(deps) {
    if (await isClockSteady(deps)) await removeExpiredJobs(deps);
  },
};
