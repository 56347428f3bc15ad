import type { ObjectId } from 'bson';
import type { App } from '../../app.js';
import { documentsName, type Collection } from '../collections/collection.js';
import { listCollections } from '../collections/collection-store.js';
import { findLimit } from '../plans/plan-limits.js';
import type { Project } from '../projects/project.js';
import { projectStore } from '../projects/project-store.js';
import { keepsChanges, type LogSize } from './change-log.js';
import { openChangeLog } from './open-change-log.js';
import { CHANGE_LOG } from './stored-log.js';

const DEFAULT_MAX_BYTES = 64 * 1024 * 1024;
/** The part of the `database` limit of a plan that the logs of a project may have together. */
const LOGS_SHARE = 0.25;

/** The log of a collection beside the bytes that it may have. */
export interface BoundedLog extends LogSize {
  maxBytes: number;
}

/** The log of a collection of a project; null where none was begun. */
export async function findBoundedLog(app: App, project: Project, collection: Collection): Promise<BoundedLog | null> {
  const logs = await listBoundedLogs(app, project);
  return logs.get(collection._id.toHexString()) ?? null;
}

/** The logs of a project by the id of their collection. */
export async function listBoundedLogs(app: App, project: Project): Promise<Map<string, BoundedLog>> {
  const logs = await measureLogs(app, await listCollections(app, project._id));
  const share = shareOf(logs, findLimit(project, 'database'));
  const bounded = new Map<string, BoundedLog>();
  for (const [collection, size] of logs) {
    const { bytes, since } = size;
    const maxBytes = await boundOf(app, collection, size, share);
    bounded.set(collection._id.toHexString(), { bytes, since, maxBytes });
  }
  return bounded;
}

/** Offers the bytes of all logs as a metric. */
export function offerLogSize(app: App): void {
  app.metrics.gauge(
    'change_log_bytes',
    'Bytes of the logs of changes',
    async () => [{ value: app.db.changeLogs?.allBytes() ?? (await app.db.measure(CHANGE_LOG)).bytes }],
    { shared: true },
  );
}

/** A log as HTTP and command line show it. */
export function presentLog(log: BoundedLog | null) {
  return log && { bytes: log.bytes, maxBytes: log.maxBytes, since: log.since?.toISOString() ?? null };
}

/** The logs of these collections, all of one project; those that were not begun are left out. */
async function measureLogs(app: App, collections: readonly Collection[]): Promise<Map<Collection, LogSize>> {
  const logs = new Map<Collection, LogSize>();
  for (const collection of collections) {
    if (!keepsChanges(app, collection)) continue;
    const size = await openChangeLog(app, collection).size();
    if (size) logs.set(collection, size);
  }
  return logs;
}

/**
 * The bytes of its logs that count for a project with this limit of its database; what is more than its logs may have
 * does not, since it is trimmed at once.
 */
export async function countLogs(
  app: App,
  projectId: ObjectId,
  collections: readonly Collection[],
  limit: number,
): Promise<number> {
  const bytes = sumOf(await measureLogs(app, collections));
  const most = limit * LOGS_SHARE;
  if (bytes <= most) return bytes;
  app.backgroundTasks.add('changes.trim', { projectId, collections }, async (items) => {
    for (const item of items) await trimLogs(app, item.projectId, item.collections);
  });
  return most;
}

/**
 * Removes changes that are older than they are to be kept, and of what is left the oldest until each log has no more
 * than 64 MB, or its documents where they are more, and all of the project's no more than a quarter of what its plan
 * grants.
 */
export async function trimLogs(app: App, projectId: ObjectId, collections: readonly Collection[]): Promise<void> {
  const logs = await measureLogs(app, collections);
  if (logs.size === 0) return;
  const project = await projectStore(app).findOne({ _id: projectId }, { projection: { plan: 1, limits: 1 } });
  const share = shareOf(logs, project ? findLimit(project, 'database') : null);
  for (const [collection, size] of logs) {
    const keepMs = collection.changes?.keepMs ?? app.config.changesKeepMs;
    const maxBytes = await boundOf(app, collection, size, share);
    await openChangeLog(app, collection).trim(new Date(app.clock.now() - keepMs), maxBytes);
  }
}

/** The part of its present size that each log of a project may have. */
function shareOf(logs: ReadonlyMap<Collection, LogSize>, limit: number | null): number {
  const bytes = sumOf(logs);
  return limit === null || bytes === 0 ? Infinity : (limit * LOGS_SHARE) / bytes;
}

async function boundOf(app: App, collection: Collection, { bytes }: LogSize, share: number): Promise<number> {
  const most =
    app.config.changesMaxBytes ?? Math.max(DEFAULT_MAX_BYTES, (await app.db.measure(documentsName(collection))).bytes);
  return share >= 1 ? most : Math.min(most, Math.floor(bytes * share));
}

function sumOf(logs: ReadonlyMap<Collection, LogSize>): number {
  return [...logs.values()].reduce((sum, { bytes }) => sum + bytes, 0);
}
