import { nextTurn } from '../../scheduler.js';
import { decodeRecord } from '../catalog/catalog-records.js';
import { ownerKey } from '../catalog/catalog.js';
import { CHANGE_SPACE } from '../format/key-spaces.js';
import type { CollectionEntry, LogSettings } from '../keys/index-definition.js';
import type { Storage } from '../storage.js';
import { decodeEntry, entryKey, eraseEntry, isRemoval, momentOf, seqOf } from './change-entry.js';
import { type LogPoint, logPosition, pointOf } from './read-changes.js';

/** Batch size, in entries. */
const CHUNK = 256;

/** With more fields that are kept first a log begins again. */
const MAX_FIRST = 100;

/**
 * Begins the log of a collection that exists; where there is one already it keeps these fields first too. None is taken
 * out: a follower from before may ask for it again, or one whose settings are newer than those of the caller. Null when
 * the collection does not exist.
 */
export async function beginLog(storage: Storage, ns: string, settings: LogSettings): Promise<LogPoint | null> {
  storage.refresh();
  const current = storage.catalog.find(ns)?.definition.log;
  const position = logPosition(storage, ns);
  if (current !== undefined && position !== null && covers(current, settings)) return position;
  if (joinFirst(settings, current).length > MAX_FIRST) await endLog(storage, ns);
  return storage.queue.write(() => {
    const collection = storage.catalog.find(ns);
    if (collection === null) return null;
    const first = joinFirst(settings, collection.definition.log);
    storage.catalog.beginLog(collection, { ...settings, first });
    return pointOf(storage, storage.catalog.logOf(collection.id));
  });
}

function covers(current: LogSettings, settings: LogSettings): boolean {
  const { omit, except } = settings;
  const isSame = current.omit.join() === omit.join() && current.except === except;
  return isSame && joinFirst(current, settings).length === current.first.length;
}

function joinFirst(settings: LogSettings, other: LogSettings | undefined): string[] {
  return [...new Set([...settings.first, ...(other?.first ?? [])])];
}

/** Ends a collection's log. Harmless to repeat. */
export async function endLog(storage: Storage, ns: string): Promise<void> {
  await storage.queue.write(() => {
    const collection = storage.catalog.find(ns);
    if (collection !== null) storage.catalog.endLog(collection);
  });
}

/** How much of a log is kept. */
export interface LogLimits {
  /** Entries from before this moment go, in milliseconds since 1970. */
  since: number;
  /** Of what is left the oldest go until it has no more than this. */
  maxBytes: number;
}

/** Removes what is beyond the limits from the front of a log, in short transactions; returns how many entries. */
export async function trimLog(storage: Storage, ns: string, limits: LogLimits): Promise<number> {
  let removed = 0;
  for (;;) {
    const step = await storage.reserve.use(() => storage.queue.write(() => trimSome(storage, ns, limits)));
    removed += step.removed;
    if (!step.more) return removed;
  }
}

function trimSome(storage: Storage, ns: string, { since, maxBytes }: LogLimits): { removed: number; more: boolean } {
  const collection = storage.catalog.find(ns);
  if (collection?.log == null) return { removed: 0, more: false };
  const end = storage.catalog.logOf(collection.id);
  let removed = 0;
  while (!storage.queue.expired()) {
    const entries = readEntries(storage, collection, 0, CHUNK);
    for (const { key, value } of entries) {
      if (momentOf(value) >= since && end.bytes <= maxBytes) return { removed, more: false };
      storage.queue.remove(key);
      end.bytes = Math.max(0, end.bytes - value.length);
      removed++;
    }
    if (entries.length < CHUNK) return { removed, more: false };
  }
  return { removed, more: true };
}

/** The moment of the oldest entry of a log; null where there is none. */
export function oldestMoment(storage: Storage, ns: string): number | null {
  const collection = storage.catalog.find(ns);
  const [oldest] = collection?.log == null ? [] : readEntries(storage, collection, 0, 1);
  return oldest ? momentOf(oldest.value) : null;
}

function readEntries(
  storage: Storage,
  collection: CollectionEntry,
  from: number,
  limit: number,
): { key: Buffer; value: Buffer }[] {
  const { id } = collection.log!;
  const range = { start: entryKey(id, from), end: ownerKey(CHANGE_SPACE, id + 1), limit };
  return [...storage.environment.store.getRange(range)];
}

/** Ids of removed documents that are looked for in one walk. */
const MAX_ERASED_TOGETHER = 10_000;

/**
 * Erases what a log holds of the documents that were removed since the last time, but for the fields that are kept
 * first: readers who learn that a document is gone are found by them. Returns how many documents. Killed at any moment
 * it is begun again.
 */
export async function eraseRemoved(storage: Storage, ns: string): Promise<number> {
  let erased = 0;
  for (;;) {
    const removed = await findRemoved(storage, ns);
    if (removed === null) return erased;
    if (removed.ids.size > 0) await eraseEntries(storage, ns, removed);
    await storage.queue.write(() => {
      const collection = storage.catalog.find(ns);
      if (collection?.log?.id === removed.logId) storage.catalog.logOf(collection.id).erased = removed.upTo;
    });
    erased += removed.ids.size;
  }
}

interface Removed {
  logId: number;
  ids: Set<string>;
  /** The number of the last entry that was looked at. */
  upTo: number;
}

async function findRemoved(storage: Storage, ns: string): Promise<Removed | null> {
  storage.refresh();
  const collection = storage.catalog.find(ns);
  if (collection?.log == null) return null;
  const { log } = storage.catalog.counts(collection.id);
  if (log === null || log.erased >= log.seq) return null;
  const removed: Removed = { logId: collection.log.id, ids: new Set(), upTo: log.erased };
  while (removed.upTo < log.seq && removed.ids.size < MAX_ERASED_TOGETHER) {
    storage.refresh();
    const entries = readEntries(storage, collection, removed.upTo + 1, CHUNK);
    if (entries.length === 0) {
      // Trimmed since it was read.
      removed.upTo = log.seq;
      break;
    }
    for (const { key, value } of entries) {
      removed.upTo = seqOf(key);
      if (isRemoval(value)) removed.ids.add(idOf(storage, key, value));
    }
    await nextTurn();
  }
  return removed;
}

async function eraseEntries(storage: Storage, ns: string, { logId, ids, upTo }: Removed): Promise<void> {
  let next = 0;
  while (next <= upTo) {
    next = await storage.queue.write(() => {
      const collection = storage.catalog.find(ns);
      if (collection?.log?.id !== logId) return upTo + 1;
      const end = storage.catalog.logOf(collection.id);
      const entries = readEntries(storage, collection, next, CHUNK);
      for (const { key, value } of entries) {
        decodeRecord(key, value, `A change in the log of ${ns}`);
        if (!ids.has(idOf(storage, key, value))) continue;
        const erased = eraseEntry(key, collection.log, value);
        if (erased.equals(value)) continue;
        storage.queue.put(key, erased);
        end.bytes += erased.length - value.length;
      }
      return entries.length < CHUNK ? upTo + 1 : seqOf(entries.at(-1)!.key) + 1;
    });
    await nextTurn();
  }
}

function idOf(storage: Storage, key: Buffer, value: Buffer): string {
  return storage.documents.encodeIdOf(decodeEntry(key, value).earlier).latin1Slice();
}
