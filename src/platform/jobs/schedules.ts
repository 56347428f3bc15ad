import { schedule as scheduleTask } from 'node-cron';
import type { AnyJobDefinition } from './job.js';
import type { JobDependencies } from './job-queue.js';

/** A job without payload that is enqueued at every tick of a cron expression (UTC; six fields start with seconds). */
export interface Schedule<Deps> {
  job: AnyJobDefinition<Deps>;
  cron: string;
}

/** Longer than two machines' clocks can differ, so that a late tick still meets the key of an early one. */
const KEEP_TICK_MS = 3_600_000;

/** Enqueues one run of a schedule; any number of processes that do so for the same tick make one job. */
export async function enqueueTick<Deps extends JobDependencies>(
  deps: Deps,
  { job }: Schedule<Deps>,
  tick: Date,
): Promise<boolean> {
  const uniqueKey = `${job.name}@${tick.toISOString()}`;
  return deps.jobs.enqueue(job, {}, { uniqueKey, keepMs: KEEP_TICK_MS });
}

/** Starts the timers; returns how to stop them. A tick that cannot be enqueued is logged and left to the next one. */
export function startSchedules<Deps extends JobDependencies>(
  deps: Deps,
  schedules: readonly Schedule<Deps>[],
): () => Promise<void> {
  const tasks = schedules.map((entry) =>
    scheduleTask(
      entry.cron,
      async ({ date }) => {
        try {
          await enqueueTick(deps, entry, date);
        } catch (error) {
          deps.log.error({ err: error, job: entry.job.name }, 'a scheduled job could not be enqueued');
        }
      },
      { timezone: 'UTC', suppressMissedWarning: true },
    ),
  );
  return async () => {
    for (const task of tasks) await task.destroy();
  };
}
