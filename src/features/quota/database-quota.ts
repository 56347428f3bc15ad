import { hexOf } from '../../platform/ids.js';
import { calculateObjectSize, type Document, type ObjectId } from 'bson';
import type { App } from '../../app.js';
import { forbidden } from '../../errors.js';
import { countLogs } from '../changes/log-bound.js';
import { documentsName } from '../collections/collection.js';
import { listCollections } from '../collections/collection-store.js';
import { findLimit, findUserShare } from '../plans/plan-limits.js';
import { projectStore } from '../projects/project-store.js';
import { countServiceRecords, serviceRecordBytes, type ServiceRecord } from './service-records.js';
import { requireShare } from './user-share.js';

/** A project's room, as a process knows it. */
interface Room {
  /** Bytes of documents that the plan grants, null = unlimited. */
  limit: number | null;
  /** Those that one user may have, null = all. */
  share: number | null;
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
/** The parts of the limit until which small changes, and what the service keeps, are let in. */
const CORRECTIONS = 1.05;
const KEPT = 1.1;

/** By project; a promise while it is measured. */
const rooms = new WeakMap<App['db'], Map<string, Room | Promise<Room>>>();

/**
 * What a write adds: new documents, the values that a stored one is given, or a record that the service keeps, by its
 * kind or its bytes.
 */
export type AddedBytes =
  { documents: readonly Document[] } | { change: Document } | { kept: ServiceRecord | number } | null;

/**
 * 403 QUOTA_EXCEEDED when what a write adds would not fit into what the project's plan grants, or into the share of the
 * user on whose behalf `app` acts; small changes find a
 * little more room, so that what is stored can be marked and corrected, and so do kept records, so that users of a full
 * project can sign in. Processes measure by themselves, every two seconds or 512 KiB of their own, so together they may
 * store up to that much more each. A promise only when it takes time.
 */
export function requireRoomFor(app: App, projectId: ObjectId, added: Exclude<AddedBytes, null>): Promise<void> | null {
  const room = peekRoom(app, projectId);
  return room ? takeRoom(app, projectId, room, added) : takeMeasuredRoom(app, projectId, added);
}

async function takeMeasuredRoom(app: App, projectId: ObjectId, added: Exclude<AddedBytes, null>): Promise<void> {
  await takeRoom(app, projectId, await findRoom(app, projectId), added);
}

function takeRoom(app: App, projectId: ObjectId, room: Room, added: Exclude<AddedBytes, null>): Promise<void> | null {
  if (room.limit === null) return null;
  const bytes = bytesOf(added);
  const part = partFor(added, bytes);
  const limit = room.limit * part;
  requireRoom(room, bytes, limit);
  const { type, id: userId } = app.actor;
  if (room.share !== null && type === 'user' && userId !== undefined) {
    const stored = room.used + room.added;
    const waits = requireShare(app, { projectId, userId, bytes, share: room.share * part, stored });
    if (waits) {
      return waits.then(() => {
        requireRoom(room, bytes, limit);
        room.added += bytes;
      });
    }
  }
  room.added += bytes;
  return null;
}

function requireRoom({ used, added }: Room, bytes: number, limit: number): void {
  if (used + added + bytes > limit) throw quotaExceeded();
}

function bytesOf(added: Exclude<AddedBytes, null>): number {
  if ('kept' in added) return typeof added.kept === 'number' ? added.kept : serviceRecordBytes(added.kept);
  const documents = 'documents' in added ? added.documents : [added.change];
  return documents.reduce<number>((sum, document) => sum + calculateObjectSize(document), 0);
}

/** The part of the limit until which it is let in. */
function partFor(added: Exclude<AddedBytes, null>, bytes: number): number {
  if ('kept' in added) return KEPT;
  return 'change' in added && bytes <= SMALL_CHANGE_BYTES ? CORRECTIONS : 1;
}

function quotaExceeded(): Error {
  return forbidden(
    'QUOTA_EXCEEDED',
    'The database quota of the project is used up. Delete documents permanently, or upgrade the plan',
  );
}

function roomsOf({ db }: App): Map<string, Room | Promise<Room>> {
  let known = rooms.get(db);
  if (!known) rooms.set(db, (known = new Map<string, Room | Promise<Room>>()));
  return known;
}

function isFresh({ added, measuredAt }: Room): boolean {
  return added < FRESH_BYTES && performance.now() - measuredAt < FRESH_MS;
}

/** The room where it is known and not too old. */
function peekRoom(app: App, projectId: ObjectId): Room | null {
  const room = roomsOf(app).get(hexOf(projectId));
  return room && !(room instanceof Promise) && isFresh(room) ? room : null;
}

async function findRoom(app: App, projectId: ObjectId): Promise<Room> {
  const known = roomsOf(app);
  const key = hexOf(projectId);
  const underWay = known.get(key);
  if (underWay instanceof Promise) {
    const room = await underWay;
    if (isFresh(room)) return room;
    // Of those that found it too old together one measures again.
    const again = known.get(key);
    if (again instanceof Promise) return again;
  }
  if (known.size >= MAX_KNOWN) known.clear();
  const measuring = measureRoom(app, projectId).then(
    (room) => {
      if (known.get(key) === measuring) known.set(key, room);
      return room;
    },
    (error: unknown) => {
      if (known.get(key) === measuring) known.delete(key);
      throw error;
    },
  );
  known.set(key, measuring);
  return measuring;
}

async function measureRoom(app: App, projectId: ObjectId): Promise<Room> {
  const measuredAt = performance.now();
  const project = await projectStore(app).findOne({ _id: projectId }, { projection: { plan: 1, limits: 1 } });
  const limit = project ? findLimit(project, 'database') : null;
  const share = project && findUserShare(project, 'database');
  if (limit === null) return { limit, share, used: 0, added: 0, measuredAt };
  return { limit, share, used: (await measureDatabase(app, projectId, limit)).used, added: 0, measuredAt };
}

/**
 * The bytes of a project that count in the quota of its database: documents, logs of changes, and, as `kept`, what the
 * service keeps for it beside these. `limit` is that of its plan, null = unlimited.
 */
export async function measureDatabase(
  app: App,
  projectId: ObjectId,
  limit: number | null,
): Promise<{ used: number; kept: number }> {
  const collections = await listCollections(app, projectId);
  const sizes = await Promise.all(collections.map((collection) => app.db.measure(documentsName(collection))));
  const kept = await countServiceRecords(app, projectId);
  const logs = await countLogs(app, projectId, collections, limit ?? Infinity);
  return { used: sizes.reduce((sum, { bytes }) => sum + bytes, logs + kept), kept };
}
