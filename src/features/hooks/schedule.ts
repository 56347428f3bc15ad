import { Cron } from 'croner';
import { invalid, missing } from '../../errors.js';
import type { ObjectId } from 'bson';
import type { App } from '../../app.js';
import { storeOf } from '../../platform/database/database.js';
import type { EncryptedPlace } from '../../platform/secrets/reencrypt.js';
import type { Project } from '../projects/project.js';
import { SCHEDULED_CALLS } from '../projects/own-code.js';
import { removeCalls } from './call-log.js';
import { handlerContext } from './hook.js';

/** The moments that a cron expression names in a time zone, in milliseconds since 1970. */
interface DueTimes {
  /** The first one after that moment; null when there is none. */
  after(ms: number): number | null;
}

const MAX_CHARACTERS = 100;
const TIME_ZONE = /^[A-Za-z][\w+/-]{0,63}$/;
const EVERY = /[*?]/;
const LAST_MINUTE = 59;
const LAST_HOUR = 23;

/**
 * Reads an expression of five fields, so that no two of its moments are less than a minute apart. A local time that
 * occurs twice counts once, the first time; one that does not occur is the first moment after the gap. Expressions for
 * every hour, or every so many, go on by the hours that pass instead. 400 INVALID_SCHEDULE.
 */
export function readDueTimes(cron: string, timeZone: string): DueTimes {
  const fields = cron.trim().split(/\s+/);
  if (cron.length > MAX_CHARACTERS || fields.length !== 5) {
    throw invalid('INVALID_SCHEDULE', `A cron expression has five fields: minute, hour, day, month, weekday`);
  }
  requireTimeZone(timeZone);
  const read = open(fields, timeZone);
  const [minute = '', hour = '', ...days] = fields;
  if (EVERY.test(hour)) return read;
  return open([spellOut(minute, LAST_MINUTE), spellOut(hour, LAST_HOUR), ...days], timeZone);
}

function requireTimeZone(timeZone: string): void {
  try {
    if (!TIME_ZONE.test(timeZone)) throw new RangeError();
    new Intl.DateTimeFormat('en', { timeZone });
  } catch {
    const text = `${JSON.stringify(timeZone.slice(0, 64))} is no time zone: use a name such as Europe/Berlin or UTC`;
    throw invalid('INVALID_SCHEDULE', text);
  }
}

function open(fields: readonly string[], timezone: string): DueTimes {
  let read: Cron;
  try {
    read = new Cron(fields.join(' '), { timezone, paused: true, fixedTimeRule: 'no-wildcard' });
    if (read.nextRun(new Date())) return { after: (ms) => read.nextRun(new Date(ms))?.getTime() ?? null };
  } catch (error) {
    const why = error instanceof Error ? error.message.replace(/^CronPattern: /, '') : String(error);
    throw invalid('INVALID_SCHEDULE', `The cron expression cannot be read: ${why}`, { cause: error });
  }
  throw invalid('INVALID_SCHEDULE', 'The cron expression names no moment that will ever come');
}

/** A field without wildcards and steps: times that occur twice or never are then treated as those of a single one. */
function spellOut(field: string, last: number): string {
  return field
    .split(',')
    .flatMap((part) => {
      const [range = '', step] = part.split('/');
      if (step === undefined && !EVERY.test(range)) return [part];
      const [from = 0, to = last] = EVERY.test(range) ? [] : range.split('-').map(Number);
      const every = Number(step ?? 1);
      return Array.from({ length: Math.floor((to - from) / every) + 1 }, (_, at) => String(from + at * every));
    })
    .join(',');
}

export const MISSED = ['once', 'skip'] as const;

/** When a schedule runs; `missed`: what happens with times at which no process ran. */
export interface Repetition {
  cron: string;
  timeZone: string;
  missed: (typeof MISSED)[number];
}

/**
 * Own code that is called at a time: a schedule, or one call (hooks.md 3). A run begins with the change that plans the
 * next one, in one transaction with its job, so that a due time has one run or waits.
 */
export interface ScheduledCall {
  _id: ObjectId;
  projectId: ObjectId;
  kind: 'recurring' | 'once';
  /** Of one call the key that it was given, else its id. */
  name: string;
  repetition?: Repetition;
  /** What is called, encrypted. */
  target: string;
  /** Of one call: JSON text that it is sent. */
  body?: string;
  /** Of one call: the size as which it counts in the project's quota. */
  size?: number;
  /** null: it will not run any more, or the one call is under way. */
  dueAt: Date | null;
  /** When that was decided: a clock that is before it has been set back since. */
  plannedAt: Date;
  /** The due time of the last run: no other one is tried again. */
  ranFor: Date | null;
  /** Due times that were called lately, the newest last: not to be repeated when the clock is set back. */
  called: Date[];
  last: LastRun | null;
  createdAt: Date;
  updatedAt: Date;
}

/** How the last call ended; `dueAt` is null for a manual call. */
interface LastRun {
  dueAt: Date | null;
  at: Date;
  error: string | null;
}

export const scheduleStore = storeOf<ScheduledCall>(SCHEDULED_CALLS);

/** The schedules of a project, by name. */
export function listSchedules(app: Pick<App, 'db'>, projectId: ObjectId): Promise<ScheduledCall[]> {
  return scheduleStore(app).find({ projectId, kind: 'recurring' }).sort({ name: 1 }).toArray();
}

/** The schedule of that name; 404 SCHEDULE_NOT_FOUND. */
export async function requireSchedule(app: App, { _id }: Pick<Project, '_id'>, name: string): Promise<ScheduledCall> {
  const found = await scheduleStore(app).findOne({ projectId: _id, kind: 'recurring', name });
  if (!found) throw noSchedule(name);
  return found;
}

export const noSchedule = (name: string) =>
  missing('SCHEDULE_NOT_FOUND', `The project has no schedule or call ${name.slice(0, 100)}`);

/**
 * Changes a stored schedule by one write, and answers it as it is afterwards; null when it is gone. `change` gives the
 * same object to keep it, null to remove it.
 */
export async function changeSchedule(
  app: App,
  id: ObjectId,
  change: (stored: ScheduledCall) => Omit<ScheduledCall, 'updatedAt'> | null,
): Promise<ScheduledCall | null> {
  const { after } = await app.db.transform(SCHEDULED_CALLS, id, (stored) => {
    const next = stored && change(stored as ScheduledCall);
    return next && next !== stored ? { ...next, updatedAt: laterThan(app, stored as ScheduledCall) } : next;
  });
  return after as ScheduledCall | null;
}

/** The moment of a change: later than that of the one before, however the clock was moved. */
export function laterThan({ clock }: App, { updatedAt }: ScheduledCall): Date {
  return new Date(Math.max(clock.now(), updatedAt.getTime() + 1));
}

/** Removes all schedules of a project with their logs, when it goes. Harmless to repeat. */
export async function removeProjectSchedules(app: App, projectId: ObjectId): Promise<void> {
  for (const { _id } of await listSchedules(app, projectId)) await removeCalls(app, _id);
  await scheduleStore(app).deleteMany({ projectId });
}

export const ENCRYPTED_SCHEDULES: EncryptedPlace = {
  collection: SCHEDULED_CALLS,
  fields: (record) => {
    const { _id, projectId, target } = record as ScheduledCall;
    return [{ path: 'target', encrypted: target, context: handlerContext(projectId, _id) }];
  },
};
