import { ObjectId } from 'bson';
import type { App } from '../../app.js';
import { isRestoring } from '../../platform/database/restore-mark.js';
import { retryDelay, type JobDefinition } from '../../platform/jobs/job.js';
import { putJob } from '../../platform/jobs/job-queue.js';
import { projectStore } from '../projects/project-store.js';
import { SCHEDULED_CALLS } from '../projects/own-code.js';
import { tryHandler } from './call-handler.js';
import { readDueTimes, changeSchedule, laterThan, scheduleStore, type ScheduledCall } from './schedule.js';
import { openHandler, type HandlerCall } from './hook.js';

/** A run so late is one that was missed. */
const MISSED_MS = 60_000;
/** Time limit for a background handler. */
const TIMEOUT_MS = 60_000;
/** Between the tries of a run; the next due time of a schedule ends them. */
const RETRIES = { delaysMs: [60_000, 300_000, 1_800_000, 7_200_000] };
const KEPT_DUE_TIMES = 100;

const BATCH = 100;
/** Runs of one project that begin before those of all others had their turn. */
const PER_PROJECT = 100;
const LOOK_MS = 1_000;

/** The next due time after a moment that was not called already, as one can be when the clock was set back. */
export function findDueTime({ repetition, called }: Pick<ScheduledCall, 'repetition' | 'called'>, fromMs: number) {
  if (!repetition) return null;
  const dueTimes = readDueTimes(repetition.cron, repetition.timeZone);
  const done = new Set(called.map((each) => each.getTime()));
  let next = dueTimes.after(fromMs);
  while (next !== null && done.has(next)) next = dueTimes.after(next);
  return next === null ? null : new Date(next);
}

interface RunPayload {
  scheduleId: string;
  /** Milliseconds since 1970. */
  dueAt: number;
  isLate: boolean;
  /** Tries that have failed. */
  failures: number;
}

/** Makes a job of each due run and plans the next: any number of processes make one. How many there were. */
export async function startDueRuns(app: App): Promise<number> {
  const begun = new Map<string, number>();
  const failed: ObjectId[] = [];
  let count = 0;
  for (;;) {
    const full = [...begun].filter(([, many]) => many >= PER_PROJECT).map(([id]) => new ObjectId(id));
    const due = await scheduleStore(app)
      .find({ dueAt: { $lte: new Date(app.clock.now()) }, projectId: { $nin: full }, _id: { $nin: failed } })
      .sort({ dueAt: 1, _id: 1 })
      .limit(BATCH)
      .toArray();
    if (due.length === 0) break;
    for (const schedule of due) {
      const project = schedule.projectId.toHexString();
      begun.set(project, (begun.get(project) ?? 0) + 1);
      try {
        if (await beginRun(app, schedule)) count++;
      } catch (error) {
        failed.push(schedule._id);
        app.log.error({ err: error, project, schedule: schedule.name }, 'a due call could not be begun');
      }
    }
  }
  if (count > 0) app.jobs.wake();
  return count;
}

/** True where a run begins; others may have begun it, and a missed one may have to be left out. */
async function beginRun(app: App, schedule: ScheduledCall): Promise<boolean> {
  const nowMs = app.clock.now();
  const dueMs = schedule.dueAt!.getTime();
  const isLate = nowMs - dueMs > MISSED_MS;
  const isRun = !isLate || schedule.repetition?.missed !== 'skip';
  const called = isRun ? [...schedule.called, schedule.dueAt!].slice(-KEPT_DUE_TIMES) : schedule.called;
  // One late run stands for all that were missed; without one, what is not late yet is still to come.
  const fromMs = !isLate ? dueMs : isRun ? nowMs : nowMs - MISSED_MS - 1;
  const dueAt = findDueTime({ ...schedule, called }, fromMs);
  const payload: RunPayload = { scheduleId: schedule._id.toHexString(), dueAt: dueMs, isLate, failures: 0 };
  const job = putJob(app, runScheduleJob, payload, { party: schedule.projectId.toHexString() });
  return app.db.transaction((tx) => {
    const stored = tx.get<ScheduledCall>(SCHEDULED_CALLS, schedule._id);
    if (stored?.updatedAt.getTime() !== schedule.updatedAt.getTime()) return false;
    const ran = isRun ? { ranFor: schedule.dueAt, called } : {};
    const plannedAt = new Date(nowMs);
    tx.put(SCHEDULED_CALLS, { ...stored, ...ran, dueAt, plannedAt, updatedAt: laterThan(app, stored) });
    if (isRun) job(tx);
    return isRun;
  });
}

/** Plans again what was planned by a clock that has been set back since. */
export async function replanSchedules(app: App): Promise<void> {
  const now = new Date(app.clock.now());
  for await (const { _id } of scheduleStore(app).find({ kind: 'recurring', plannedAt: { $gt: now } })) {
    await changeSchedule(app, _id, (stored) => ({
      ...stored,
      dueAt: findDueTime(stored, now.getTime()),
      plannedAt: now,
    }));
  }
}

/** Begins due runs, every second; returns how to stop that, which resolves when nothing is being begun any more. */
export function watchSchedules(app: App): () => Promise<void> {
  // The clock was set back while no process ran: plan again.
  let seenMs = Infinity;
  let looking = Promise.resolve();
  const look = async (): Promise<void> => {
    const nowMs = app.clock.now();
    try {
      if (await isRestoring(app.db)) return;
      if (nowMs < seenMs) await replanSchedules(app);
      seenMs = nowMs;
      await startDueRuns(app);
    } catch (error) {
      app.log.error({ err: error }, 'due calls could not be read');
    }
  };
  let isStopped = false;
  let timer: NodeJS.Timeout;
  const next = (): void => {
    timer = setTimeout(() => {
      looking = look().finally(() => {
        if (!isStopped) next();
      });
    }, LOOK_MS);
  };
  next();
  return async () => {
    isStopped = true;
    clearTimeout(timer);
    await looking;
  };
}

/** One try of a run; the next one is a job of its own. */
export const runScheduleJob: JobDefinition<App, RunPayload> = {
  name: 'hooks.runSchedule',
  // Of the service's own failures; those of handlers have their retries.
  retry: { delaysMs: [1_000, 10_000, 60_000], endless: true },
  concurrency: 20,
  perParty: 4,
  async run(app, { scheduleId, dueAt, isLate, failures }) {
    const schedule = await scheduleStore(app).findOne({ _id: new ObjectId(scheduleId) });
    const isActive = schedule && (await projectStore(app).findOne({ _id: schedule.projectId, state: 'active' }));
    if (!isActive) return;
    // Another run has begun since, or the one call was put off.
    const isOver = schedule.ranFor?.getTime() !== dueAt;
    if (isOver && (failures > 0 || schedule.kind === 'once')) return;
    const ranFor = new Date(dueAt);
    const { error } = await callSchedule(app, schedule, { dueAt: ranFor, isLate, failures });
    const delayMs = error === null ? null : retryDelay(RETRIES, failures + 1, Math.random());
    const at = new Date(app.clock.now());
    if (delayMs !== null) {
      const payload = { scheduleId, dueAt, isLate, failures: failures + 1 };
      const uniqueKey = `${runId(schedule._id, ranFor)}_${failures + 1}`;
      const runAt = new Date(at.getTime() + delayMs);
      await app.jobs.enqueue(runScheduleJob, payload, { uniqueKey, runAt, party: schedule.projectId.toHexString() });
    }
    await changeSchedule(app, schedule._id, (stored) => {
      const isLast = stored.ranFor?.getTime() === dueAt;
      if (isLast && stored.kind === 'once' && delayMs === null) return null;
      return isLast ? { ...stored, last: { dueAt: ranFor, at, error } } : stored;
    });
  },
};

const runId = (scheduleId: ObjectId, dueAt: Date): string => `run_${scheduleId.toHexString()}_${dueAt.getTime()}`;

/**
 * Calls a schedule's own code once; an answer of 200 to 299, or any of a file, is a success. `dueAt` is null when
 * it is requested now.
 */
export async function callSchedule(
  app: App,
  { _id, projectId, kind, name, target, body }: ScheduledCall,
  { dueAt, isLate, failures }: { dueAt: Date | null; isLate: boolean; failures: number },
): Promise<{ answer: string; error: string | null }> {
  const told = { event: kind === 'once' ? 'call' : 'schedule', name, dueAt: dueAt?.toISOString() ?? null };
  const text = JSON.stringify({ ...told, isLate, attempt: failures + 1 });
  const call: HandlerCall = {
    projectId,
    // Logs of single calls belong to the project, because the calls no longer exist when the log is read.
    ownerId: kind === 'once' ? projectId : _id,
    id: dueAt ? runId(_id, dueAt) : `run_${new ObjectId().toHexString()}`,
    event: kind === 'once' ? `call.${name}` : `schedule.${name}`,
    body: body === undefined ? text : `${text.slice(0, -1)},"body":${body}}`,
    target: openHandler(app, projectId, { id: _id, target }),
    timeoutMs: TIMEOUT_MS,
    depth: 0,
    inBackground: true,
  };
  return tryHandler(app, call, null);
}
