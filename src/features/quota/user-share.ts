import type { Document, ObjectId } from 'bson';
import { LRUCache } from 'lru-cache';
import type { App } from '../../app.js';
import { forbidden } from '../../errors.js';
import { documentsName, type Collection } from '../collections/collection.js';
import { WRITTEN_BY } from '../collections/fields/field.js';
import { listCollections } from '../collections/collection-store.js';
import { serviceRecordBytes, REPEATED_REQUESTS, storeOfServiceRecord } from './service-records.js';

/** Measured again after so many bytes, or the part of the share that is more. */
const FRESH_BYTES = 512 * 1024;
const FRESH_PART = 1 / 64;
/** Without room it is measured again when documents may have been deleted, at most a twentieth of the time. */
const FRESH_MS = 2_000;
const REST = 20;
/** What was let in this long ago may still be on its way to the database. */
const UNDER_WAY_MS = 2_000;
const MAX_KNOWN = 10_000;

/**
 * What a user has stored in a project, as a process knows it. It is measured, because a counter would cost each write
 * and could not follow what the trash, rules and servers remove.
 */
class UserBytes {
  /** Null until it is measured. */
  #used: number | null = null;
  /** The bytes that this process has let in since. */
  #added = 0;
  /** Until when it is believed where the user has no room by it. */
  #freshUntil = 0;
  /** The bytes that this process has let in during this window, and during the one before. */
  #recent = 0;
  #before = 0;
  #windowEnds = 0;
  #measuring: Promise<void> | null = null;

  admit(bytes: number): void {
    this.#turnWindow();
    this.#recent += bytes;
    this.#added += bytes;
  }

  /** Whether so many bytes more are within the share; a promise of measuring when that is not known. */
  fits(bytes: number, share: number, measure: () => Promise<number>): boolean | Promise<void> {
    if (this.#used !== null && this.#added < Math.max(FRESH_BYTES, share * FRESH_PART)) {
      const isWithin = this.#used + this.#added + bytes <= share;
      if (isWithin || performance.now() < this.#freshUntil) return isWithin;
    }
    return (this.#measuring ??= this.#measure(measure).finally(() => (this.#measuring = null)));
  }

  async #measure(measure: () => Promise<number>): Promise<void> {
    const began = performance.now();
    this.#turnWindow();
    const underWay = this.#recent + this.#before;
    this.#used = null;
    this.#added = 0;
    this.#used = underWay + (await measure());
    this.#freshUntil = performance.now() + Math.max(FRESH_MS, REST * (performance.now() - began));
  }

  #turnWindow(): void {
    const now = performance.now();
    if (now < this.#windowEnds) return;
    this.#before = now < this.#windowEnds + UNDER_WAY_MS ? this.#recent : 0;
    this.#recent = 0;
    this.#windowEnds = now + UNDER_WAY_MS;
  }
}

const known = new WeakMap<App['db'], LRUCache<string, UserBytes>>();

/** A write by a user to a project, and what is known of the project. */
interface SharedWrite {
  projectId: ObjectId;
  userId: string;
  bytes: number;
  /** What one user may store. */
  share: number;
  /** What is stored in the whole project. */
  stored: number;
}

/**
 * 403 QUOTA_EXCEEDED when a user would have more than a user's share of the project's database; null when the bytes are
 * let in at once, as they are while the whole project has less than a share. Each process measures for itself, and may
 * let in 512 KiB, or a 64th of the share, too much.
 */
export function requireShare(app: App, write: SharedWrite): Promise<void> | null {
  let users = known.get(app.db);
  if (!users) known.set(app.db, (users = new LRUCache({ max: MAX_KNOWN })));
  const key = `${write.projectId.toHexString()} ${write.userId}`;
  let user = users.get(key);
  if (!user) users.set(key, (user = new UserBytes()));
  if (write.stored + write.bytes > write.share) return requireMeasured(app, user, write);
  user.admit(write.bytes);
  return null;
}

async function requireMeasured(app: App, user: UserBytes, write: SharedWrite): Promise<void> {
  for (;;) {
    const fits = user.fits(write.bytes, write.share, () => measureUser(app, write));
    if (fits === true) break;
    if (fits === false) throw shareUsedUp('database');
    await fits;
  }
  user.admit(write.bytes);
}

/** The refusal for a user who has used up their share of a limit, while the project may have room. */
export function shareUsedUp(limit: 'storage' | 'database'): Error {
  const advice = limit === 'storage' ? 'delete files of theirs' : 'delete documents of theirs permanently';
  return forbidden(
    'QUOTA_EXCEEDED',
    `The user has used up their share of the project’s ${limit} quota: ${advice}, or raise the limit "userShare"`,
  );
}

async function measureUser(app: App, { projectId, userId }: SharedWrite): Promise<number> {
  const files = storeOfServiceRecord('files');
  let used =
    (await app.db.collection(files).countDocuments({ projectId, uploadedBy: userId })) * serviceRecordBytes('files');
  used += await sumOf(app, REPEATED_REQUESTS, { projectId, by: userId }, '$size');
  for (const collection of await listCollections(app, projectId)) {
    for (const filter of ofUser(collection, userId)) {
      used += await sumOf(app, documentsName(collection), filter, { $bsonSize: '$$ROOT' });
    }
  }
  return used;
}

/** The documents that count as a user's, in the parts for which there are indexes. */
function ofUser({ rls, rules }: Collection, userId: string): Document[] {
  if (rls) return [false, true].map((isDeleted) => ({ [rls.ownerField]: userId, isDeleted }));
  return rules ? [{ [WRITTEN_BY]: userId }] : [];
}

async function sumOf(app: App, store: string, filter: Document, bytes: unknown): Promise<number> {
  const [sum] = await app.db
    .collection(store)
    .aggregate<{ bytes: number }>([{ $match: filter }, { $group: { _id: null, bytes: { $sum: bytes } } }])
    .toArray();
  return sum?.bytes ?? 0;
}
