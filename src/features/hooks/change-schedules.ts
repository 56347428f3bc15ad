import { ObjectId } from 'bson';
import type { App } from '../../app.js';
import { conflict, forbidden, invalid } from '../../errors.js';
import { unlessDuplicate } from '../../platform/database/database.js';
import { maskAddress } from '../../platform/secrets/mask-address.js';
import type { Project } from '../projects/project.js';
import { removeCalls } from './call-log.js';
import { newTarget } from './change-hooks.js';
import {
  readDueTimes,
  changeSchedule,
  requireSchedule,
  scheduleStore,
  type Repetition,
  type ScheduledCall,
} from './schedule.js';
import { openHandler, encryptHandler } from './hook.js';
import { callSchedule, findDueTime } from './run-schedules.js';

const MAX_SCHEDULES = 100;
const NAME = /^[A-Za-z0-9][\w-]{0,63}$/;

export interface NewSchedule {
  name: string;
  cron: string;
  /** UTC unless given. */
  timeZone?: string;
  missed?: Repetition['missed'];
  url?: string;
  run?: string;
  /** Answer the schedule of that name instead of refusing. */
  ifNotExists?: boolean;
}

export interface AddedSchedule {
  schedule: ScheduledCall;
  /** Signs the calls; shown once. Null where nothing is signed, or the schedule was there already. */
  secret: string | null;
  created: boolean;
}

/**
 * Has own code called again and again. 400 INVALID_SCHEDULE, or for a bad address or file; 409 SCHEDULE_EXISTS; 403
 * SCHEDULE_LIMIT.
 */
export async function addSchedule(app: App, project: Project, input: NewSchedule): Promise<AddedSchedule> {
  const { name } = input;
  if (!NAME.test(name)) {
    throw invalid('INVALID_SCHEDULE', 'A schedule has a name of at most 64 letters, digits, - and _');
  }
  const repetition = readRepetition(input);
  const { target, secret } = await newTarget(app, project, input, name);
  const _id = new ObjectId();
  const now = new Date(app.clock.now());
  const schedule: ScheduledCall = {
    ...{ _id, projectId: project._id, kind: 'recurring', name, repetition },
    target: encryptHandler(app, project._id, _id, target),
    ...{ dueAt: findDueTime({ repetition, called: [] }, now.getTime()), plannedAt: now },
    ...{ ranFor: null, called: [], last: null, createdAt: now, updatedAt: now },
  };
  if (!(await unlessDuplicate(scheduleStore(app).insertOne(schedule)))) {
    if (!input.ifNotExists) throw conflict('SCHEDULE_EXISTS', `There is a schedule ${name}: remove that one first`);
    return { schedule: await requireSchedule(app, project, name), secret: null, created: false };
  }
  // Counted afterwards: of several at once the last one sees them all.
  await requireFewer(app, schedule, MAX_SCHEDULES, `A project has at most ${MAX_SCHEDULES} schedules`);
  return { schedule, secret, created: true };
}

/** Takes a new one away again where there are more than `most` of its kind: 403 SCHEDULE_LIMIT. */
export async function requireFewer(app: App, added: ScheduledCall, most: number, message: string): Promise<void> {
  const { _id, projectId, kind } = added;
  if ((await scheduleStore(app).countDocuments({ projectId, kind }, { limit: most + 1 })) <= most) return;
  await scheduleStore(app).deleteOne({ _id });
  throw forbidden('SCHEDULE_LIMIT', message);
}

/** When a schedule is to run. 400 INVALID_SCHEDULE. */
export function readRepetition({ cron, timeZone = 'UTC', missed = 'once' }: Omit<NewSchedule, 'name'>): Repetition {
  readDueTimes(cron, timeZone);
  return { cron: cron.trim().split(/\s+/).join(' '), timeZone, missed };
}

/** Changes a schedule to what is given, all of it; the secret where it has a new address. 404. */
export async function setSchedule(app: App, project: Project, input: NewSchedule): Promise<string | null> {
  const repetition = readRepetition(input);
  const { _id, target: encrypted } = await requireSchedule(app, project, input.name);
  const present = openHandler(app, project._id, { id: _id, target: encrypted });
  const isSame = 'url' in present && present.url === input.url;
  const { target, secret } = isSame
    ? { target: present, secret: null }
    : await newTarget(app, project, input, input.name);
  const plannedAt = new Date(app.clock.now());
  await changeSchedule(app, _id, (stored) => ({
    ...stored,
    repetition,
    target: encryptHandler(app, project._id, _id, target),
    ...{ dueAt: findDueTime({ ...stored, repetition }, plannedAt.getTime()), plannedAt },
  }));
  return secret;
}

/** Removes a schedule with its log; 404. */
export async function removeSchedule(app: App, project: Project, name: string): Promise<ScheduledCall> {
  const schedule = await requireSchedule(app, project, name);
  await scheduleStore(app).deleteOne({ _id: schedule._id });
  await removeCalls(app, schedule._id);
  return schedule;
}

/** Calls a schedule's own code now, beside its times, and answers what it says, or why that is no answer. 404. */
export async function runSchedule(app: App, project: Project, name: string) {
  const schedule = await requireSchedule(app, project, name);
  const ended = await callSchedule(app, schedule, { dueAt: null, isLate: false, failures: 0 });
  const at = new Date(app.clock.now());
  await changeSchedule(app, schedule._id, (stored) => ({ ...stored, last: { dueAt: null, at, error: ended.error } }));
  return ended;
}

/** A schedule as command line and HTTP show it: never its secret. `full`: with the whole address. */
export function presentSchedule(app: App, { _id, projectId, name, target, ...schedule }: ScheduledCall, full = true) {
  const opened = openHandler(app, projectId, { id: _id, target });
  const { cron, timeZone, missed } = schedule.repetition!;
  return {
    ...{ id: _id.toHexString(), name, cron, timeZone, missed },
    url: 'url' in opened ? (full ? opened.url : maskAddress(opened.url)) : null,
    run: 'run' in opened ? opened.run : null,
    nextAt: schedule.dueAt?.toISOString() ?? null,
    lastAt: schedule.last?.at.toISOString() ?? null,
    lastError: schedule.last?.error ?? null,
    createdAt: schedule.createdAt.toISOString(),
  };
}
