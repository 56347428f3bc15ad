import { schedule as scheduleTask } from 'node-cron';
import { jobStore, type AnyJobDefinition } from './job.js';
import type { JobDependencies } from './job-queue.js';

/** A job without payload that is enqueued at every tick of a cron expression (UTC; six fields start with seconds). */
export interface Schedule<Deps> {
  job: AnyJobDefinition<Deps>;
  cron: string;
}

/** Longer than two machines' clocks can differ, so that a late tick still meets the key of an early one. */
const KEEP_TICK_MS = 3_600_000;

/**
 * Enqueues one run of a schedule; any number of processes that do so for the same tick make one job. A tick is left out while an earlier one has not ended: on a machine that cannot keep up, runs would otherwise pile up and make it slower still.
 */
export async function enqueueTick<Deps extends JobDependencies>(
  deps: Deps,
  { job }: Schedule<Deps>,
  tick: Date,
): Promise<boolean> {
  const lane = `schedule:${job.name}`;
  const earlier = await jobStore(deps).findOne({ heldLane: lane });
  if (earlier) {
    // One that waits to be tried again is tried now: after an outage work goes on with the next tick.
    const now = new Date(deps.clock.now());
    await jobStore(deps).updateOne({ _id: earlier._id, state: 'queued' }, { $min: { runAt: now } });
    deps.jobs.wake();
    return false;
  }
  const uniqueKey = `${job.name}@${tick.toISOString()}`;
  return deps.jobs.enqueue(job, {}, { uniqueKey, lane, keepMs: KEEP_TICK_MS });
}

const LOOK_MS = 5_000;
const SET_BACK_MS = 1_000;

/** Calls `listener` when the system's clock is found to be set back: timers that wait for a moment would wait for it a second time. */
function watchForSetBack(listener: () => void): () => void {
  let lastMs = Date.now();
  const timer = setInterval(() => {
    const nowMs = Date.now();
    if (nowMs < lastMs - SET_BACK_MS) listener();
    lastMs = nowMs;
  }, LOOK_MS);
  timer.unref();
  return () => clearInterval(timer);
}

/** Starts the timers; returns how to stop them. A tick that cannot be enqueued is logged and left to the next one. */
export function startSchedules<Deps extends JobDependencies>(
  deps: Deps,
  schedules: readonly Schedule<Deps>[],
): () => Promise<void> {
  const start = () =>
    schedules.map((entry) =>
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
  let tasks = start();
  const stopWatching = watchForSetBack(() => {
    deps.log.warn('the clock was set back: the schedules start anew');
    for (const task of tasks) void task.destroy();
    tasks = start();
  });
  return async () => {
    stopWatching();
    for (const task of tasks) await task.destroy();
  };
}
