import { createTask, parse, type ParsedFields } from 'node-cron';
import { DAY_MS } from '../time/clock.js';
import { isRestoring } from '../database/restore-mark.js';
import { jobStore, type AnyJobDefinition } from './job.js';
import type { JobDependencies } from './job-queue.js';

const SECOND_MS = 1_000;
/** The longest gap between two ticks: eight years from one 29th of February to the next across a year like 2100. */
const MAX_DAYS = 8 * 366;

/** The ticks of one cron expression. */
interface Ticks {
  /**
   * The first tick after that moment, both in milliseconds since 1970; null when there is none within eight years.
   * Looks at days, never at the ticks in between.
   */
  after(ms: number): number | null;
}

/** Reads a cron expression (UTC; six fields start with seconds); throws when it is none. */
export function readTicks(cron: string): Ticks {
  const fields = parse(cron);
  const matches = dayMatcher(cron, fields);
  const firstOfDay = timeOfDayAfter(fields, -1)!;
  return {
    after(ms) {
      const firstDayMs = Math.floor(ms / DAY_MS) * DAY_MS;
      for (let day = 0; day < MAX_DAYS; day++) {
        const dayMs = firstDayMs + day * DAY_MS;
        if (!fields.month.includes(new Date(dayMs).getUTCMonth() + 1)) continue;
        const second = day === 0 ? timeOfDayAfter(fields, Math.floor((ms - dayMs) / SECOND_MS)) : firstOfDay;
        if (second === null) continue;
        const tick = dayMs + second * SECOND_MS;
        if (matches(new Date(tick))) return tick;
      }
      return null;
    },
  };
}

/**
 * Days by number are compared here: node-cron asks the calendar of the system, which costs a process 9 MiB. Others,
 * such as the last day of the month, are left to it.
 */
function dayMatcher(cron: string, { dayOfMonth, dayOfWeek }: ParsedFields): (moment: Date) => boolean {
  if ([...dayOfMonth, ...dayOfWeek].every((day) => typeof day === 'number')) {
    return (moment) => dayOfMonth.includes(moment.getUTCDate()) && dayOfWeek.includes(moment.getUTCDay());
  }
  const task = createTask(cron, () => undefined, { timezone: 'UTC' });
  // It is never started.
  void task.destroy();
  return (moment) => task.match(moment);
}

/**
 * The first time of day that the fields name after that second of the day, in seconds; null when the day has none left.
 */
function timeOfDayAfter({ hour, minute, second }: ParsedFields, after: number): number | null {
  const hours = ascending(hour);
  const minutes = ascending(minute);
  const seconds = ascending(second);
  for (const h of hours) {
    for (const m of minutes) {
      const minuteAt = h * 3600 + m * 60;
      for (const s of seconds) if (minuteAt + s > after) return minuteAt + s;
    }
  }
  return null;
}

const ascending = (values: readonly number[]): number[] => [...values].sort((a, b) => a - b);

/** A job without payload that is enqueued at every tick of a cron expression (UTC; six fields start with seconds). */
export interface Schedule<Deps> {
  job: AnyJobDefinition<Deps>;
  cron: string;
}

/** Longer than two machines' clocks can differ, so that a late tick still meets the key of an early one. */
const KEEP_TICK_MS = 3_600_000;

/**
 * Enqueues one run of a schedule; any number of processes that do so for the same tick make one job. A tick is left out
 * while an earlier one has not ended: on a machine that cannot keep up, runs would otherwise pile up and make it slower
 * still.
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

/**
 * The interval at which the clock is read, whatever is due: the longest time for which a moved clock goes unnoticed.
 */
const LOOK_MS = 1_000;

interface Planned<Deps> {
  entry: Schedule<Deps>;
  ticks: Ticks;
  /** Milliseconds since 1970; null when the expression names no moment any more. */
  nextMs: number | null;
}

/**
 * Starts the timer; returns how to stop it, which resolves when nothing is being enqueued any more. A tick that cannot
 * be enqueued is logged and left to the next one. However far the clock is moved, or the machine slept, each schedule
 * makes up for what it missed with at most one run, and goes on from now.
 */
export function startSchedules<Deps extends JobDependencies>(
  deps: Deps,
  schedules: readonly Schedule<Deps>[],
): () => Promise<void> {
  let seenMs = deps.clock.now();
  const planned: Planned<Deps>[] = schedules.map((entry) => {
    const ticks = readTicks(entry.cron);
    return { entry, ticks, nextMs: ticks.after(seenMs) };
  });
  const underWay = new Set<Promise<void>>();
  let timer: NodeJS.Timeout;

  const enqueue = async (entry: Schedule<Deps>, tick: Date): Promise<void> => {
    try {
      if (await isRestoring(deps.db)) return;
      await enqueueTick(deps, entry, tick);
    } catch (error) {
      deps.log.error({ err: error, job: entry.job.name }, 'a scheduled job could not be enqueued');
    }
  };
  const look = (): void => {
    const nowMs = deps.clock.now();
    if (nowMs < seenMs) {
      deps.log.warn('the clock was set back: the schedules start again');
      for (const each of planned) each.nextMs = each.ticks.after(nowMs);
    }
    seenMs = nowMs;
    for (const each of planned) {
      if (each.nextMs === null || each.nextMs > nowMs) continue;
      // The moment that was planned, not the last one missed: what other processes planned too, so that all of them
      // make one run.
      const running = enqueue(each.entry, new Date(each.nextMs)).finally(() => underWay.delete(running));
      underWay.add(running);
      each.nextMs = each.ticks.after(nowMs);
    }
    plan(nowMs);
  };
  const plan = (nowMs: number): void => {
    const waits = planned.flatMap(({ nextMs }) => (nextMs === null ? [] : [nextMs - nowMs]));
    timer = setTimeout(look, Math.min(LOOK_MS, ...waits));
  };
  plan(seenMs);
  return async () => {
    clearTimeout(timer);
    await Promise.all(underWay);
  };
}
