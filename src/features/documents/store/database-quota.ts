import { calculateObjectSize, type Document, type ObjectId } from 'bson';
import type { App } from '../../../app.js';
import { forbidden } from '../../../errors.js';
import { countLogs } from '../../changes/log-bound.js';
import { documentsName } from '../../collections/collection.js';
import { listCollections } from '../../collections/list-collections.js';
import { findLimit } from '../../plans/plan-limits.js';
import { projectStore } from '../../projects/project-store.js';

/** A project's room, as a process knows it. */
interface Room {
  /** Bytes of documents that the plan grants, null = unlimited. */
  limit: number | null;
  used: number;
  /** The bytes that this process has let in since `used` was measured. */
  added: number;
  measuredAt: number;
}

/** Others may write too, so what is known grows old: sooner when much is written here. */
const FRESH_MS = 2_000;
const FRESH_BYTES = 512 * 1024;
const MAX_KNOWN = 10_000;
/** A change of so little is let in beyond the limit too: otherwise nothing could be marked or corrected any more. */
const SMALL_CHANGE_BYTES = 1024;
/** The part of the limit until which small changes are let in. */
const CORRECTIONS = 1.05;

const rooms = new WeakMap<App['db'], Map<string, Promise<Room>>>();

/** What a write adds: new documents, or the values that a stored one is given. */
export type AddedBytes = { documents: readonly Document[] } | { change: Document } | null;

/**
 * 403 QUOTA_EXCEEDED when what a write adds would not fit into what the project's plan grants; small changes find a
 * little more room, so that what is stored can be marked and corrected. Processes measure by themselves, every two
 * seconds or 512 KiB of their own, so together they may store up to that much more each.
 */
export async function requireRoomFor(app: App, projectId: ObjectId, added: Exclude<AddedBytes, null>): Promise<void> {
  const room = await findRoom(app, projectId);
  if (room.limit === null) return;
  const documents = 'documents' in added ? added.documents : [added.change];
  const bytes = documents.reduce<number>((sum, document) => sum + calculateObjectSize(document), 0);
  const isSmall = 'change' in added && bytes <= SMALL_CHANGE_BYTES;
  if (room.used + room.added + bytes > (isSmall ? room.limit * CORRECTIONS : room.limit)) throw quotaExceeded();
  room.added += bytes;
}

function quotaExceeded(): Error {
  return forbidden(
    'QUOTA_EXCEEDED',
    'The database quota of the project is used up: delete documents for good or raise the plan',
  );
}

async function findRoom(app: App, projectId: ObjectId): Promise<Room> {
  let known = rooms.get(app.db);
  if (!known) rooms.set(app.db, (known = new Map<string, Promise<Room>>()));
  const key = projectId.toHexString();
  const room = await known.get(key);
  if (room && room.added < FRESH_BYTES && performance.now() - room.measuredAt < FRESH_MS) return room;
  // Of those that found it too old together one measures anew.
  const again = known.get(key);
  const current = again && (await again);
  if (current && current !== room) return current;
  if (known.size >= MAX_KNOWN) known.clear();
  const measured = measureRoom(app, projectId);
  known.set(key, measured);
  measured.catch(() => known.delete(key));
  return measured;
}

async function measureRoom(app: App, projectId: ObjectId): Promise<Room> {
  const measuredAt = performance.now();
  const project = await projectStore(app).findOne({ _id: projectId }, { projection: { plan: 1, limits: 1 } });
  const limit = project ? findLimit(project, 'database') : null;
  if (limit === null) return { limit, used: 0, added: 0, measuredAt };
  const collections = await listCollections(app, projectId);
  const sizes = await Promise.all(collections.map((collection) => app.db.measure(documentsName(collection))));
  const logs = await countLogs(app, projectId, collections, limit);
  return { limit, used: sizes.reduce((sum, { bytes }) => sum + bytes, logs), added: 0, measuredAt };
}
