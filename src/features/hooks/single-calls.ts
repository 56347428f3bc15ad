import { ObjectId } from 'bson';
import type { App } from '../../app.js';
import { invalid } from '../../errors.js';
import { unlessDuplicate } from '../../platform/database/database.js';
import { findObjectId } from '../../platform/ids.js';
import { DAY_MS } from '../../platform/time/clock.js';
import type { Project } from '../projects/project.js';
import { findDate } from '../collections/fields/field-type.js';
import { projectStore } from '../projects/project-store.js';
import { requireRoomFor } from '../quota/database-quota.js';
import { sizeClass } from '../quota/service-records.js';
import { requireTargetUrl } from '../webhooks/add-webhook.js';
import { generateWebhookSecret } from '../webhooks/deliveries/sign-delivery.js';
import { requireFewer } from './change-schedules.js';
import { callsContext, openHandler, encryptHandler, type HandlerTarget } from './hook.js';
import { requireOwnFile } from '../projects/own-code.js';
import { changeSchedule, noSchedule, scheduleStore, type ScheduledCall } from './schedule.js';

/** A project's calls that wait; counted at each new one. */
const MAX_CALLS = 10_000;
/**
 * What is due later would be hidden for long, and would call code that has long been another:
 * a date in a document that a schedule looks at is better.
 */
export const MAX_DAYS_AHEAD = 90;
const MAX_BODY_BYTES = 64 * 1024;
/** What a call takes besides. */
const RECORD_BYTES = 500;

export interface NewCall {
  /** ISO 8601; a moment that has passed is now. */
  at: string;
  url?: string;
  run?: string;
  /** Any JSON value that the handler is given. */
  body?: unknown;
  /** Names the call: another one with the same key takes its place. */
  key?: string;
}

/**
 * Has own code called once, with the secret that signs where that is an address. 400 INVALID_SCHEDULE, or for a bad
 * address or file; 403 SCHEDULE_LIMIT, QUOTA_EXCEEDED.
 */
export async function planCall(
  app: App,
  project: Project,
  { at, url, run, body, key }: NewCall,
): Promise<{ call: ScheduledCall; secret: string | null }> {
  const now = new Date(app.clock.now());
  const dueAt = findDate(at);
  if (!dueAt || dueAt.getTime() > now.getTime() + MAX_DAYS_AHEAD * DAY_MS) {
    throw invalid('INVALID_SCHEDULE', `A call is planned for a moment (ISO 8601) at most ${MAX_DAYS_AHEAD} days ahead`);
  }
  const text = body === undefined ? undefined : JSON.stringify(body);
  const bytes = Buffer.byteLength(text ?? '');
  if (bytes > MAX_BODY_BYTES) {
    throw invalid('INVALID_SCHEDULE', `The body of a call has at most ${MAX_BODY_BYTES / 1024} KiB`);
  }
  const size = sizeClass(bytes + RECORD_BYTES);
  await requireRoomFor(app, project._id, { kept: size });
  const target = await findTarget(app, project, { url, run });
  const secret = 'secret' in target ? target.secret : null;
  const planned = { ...(text !== undefined && { body: text }), ...{ size, dueAt, plannedAt: now, ranFor: null } };
  for (;;) {
    const present = key !== undefined && (await findKeyed(app, project, key));
    const _id = present ? present._id : new ObjectId();
    const call: ScheduledCall = {
      ...{ _id, projectId: project._id, kind: 'once', name: key ?? _id.toHexString(), ...planned },
      target: encryptHandler(app, project._id, _id, target),
      ...{ called: [], last: null, createdAt: now, updatedAt: now },
    };
    if (present) {
      const changed = await changeSchedule(app, _id, () => call);
      if (changed) return { call: changed, secret };
    } else if (await unlessDuplicate(scheduleStore(app).insertOne(call))) {
      await requireFewer(app, call, MAX_CALLS, `At most ${MAX_CALLS} calls of a project wait at a time`);
      return { call, secret };
    }
  }
}

async function findTarget(
  app: App,
  project: Project,
  { url, run }: Pick<NewCall, 'url' | 'run'>,
): Promise<HandlerTarget> {
  if ((url === undefined) === (run === undefined)) throw invalid('INVALID_HOOK', 'Name either a url or a file to run');
  if (run !== undefined) return { run: await requireOwnFile(app, project, run, '') };
  return { url: await requireTargetUrl(app, url!), secret: await findSecret(app, project) };
}

/** The secret that signs all single calls of a project: the first one makes it. */
async function findSecret(app: App, { _id }: Project): Promise<string> {
  const fresh = app.secrets.encrypt(generateWebhookSecret(), callsContext(_id));
  const path = 'ownCode.calls';
  await projectStore(app).updateOne({ _id, [path]: { $exists: false } }, { $set: { [path]: fresh } });
  const project = await projectStore(app).findOne({ _id });
  return app.secrets.decrypt(project?.ownCode?.calls ?? fresh, callsContext(_id));
}

const findKeyed = (app: App, { _id }: Project, name: string): Promise<ScheduledCall | null> =>
  scheduleStore(app).findOne({ projectId: _id, kind: 'once', name });

/** The call of that key or id; 404 SCHEDULE_NOT_FOUND. */
export async function requireCall(app: App, project: Project, keyOrId: string): Promise<ScheduledCall> {
  const id = findObjectId(keyOrId);
  const found =
    (await findKeyed(app, project, keyOrId)) ??
    (id && (await scheduleStore(app).findOne({ _id: id, projectId: project._id, kind: 'once' })));
  if (!found) throw noSchedule(keyOrId);
  return found;
}

/** Takes back a call by its key or id; one that is under way may still end. 404. */
export async function removeCall(app: App, project: Project, keyOrId: string): Promise<ScheduledCall> {
  const call = await requireCall(app, project, keyOrId);
  const { deletedCount } = await scheduleStore(app).deleteOne({ _id: call._id });
  if (deletedCount === 0) throw noSchedule(keyOrId);
  return call;
}

/** The calls of a project that wait or are tried again, those that are due first before others. */
export async function listPlannedCalls(
  app: App,
  { _id }: Project,
  { page, limit }: { page: number; limit: number },
): Promise<{ items: ScheduledCall[]; total: number }> {
  const filter = { projectId: _id, kind: 'once' as const };
  const [items, total] = await Promise.all([
    scheduleStore(app)
      .find(filter, { projection: { body: 0 } })
      .sort({ dueAt: 1, _id: 1 })
      .skip((page - 1) * limit)
      .limit(limit)
      .toArray(),
    scheduleStore(app).countDocuments(filter),
  ]);
  return { items, total };
}

/** A planned call as HTTP shows it. */
export function presentCall(app: App, { _id, projectId, name, target, ...call }: ScheduledCall) {
  const opened = openHandler(app, projectId, { id: _id, target });
  const id = _id.toHexString();
  return {
    id,
    key: name === id ? null : name,
    at: (call.dueAt ?? call.ranFor ?? call.plannedAt).toISOString(),
    url: 'url' in opened ? opened.url : null,
    run: 'run' in opened ? opened.run : null,
    state: call.dueAt ? ('waiting' as const) : ('running' as const),
    lastError: call.last?.error ?? null,
    createdAt: call.createdAt.toISOString(),
  };
}
