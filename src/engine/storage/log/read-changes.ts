import { nextTurn } from '../../scheduler.js';
import { decodeDocument } from '../../codec/decode.js';
import { readId } from '../../codec/raw.js';
import type { Filter } from '../../query/match/match.js';
import { ownerKey } from '../catalog/catalog.js';
import { decodeRecord } from '../catalog/catalog-records.js';
import type { CollectionEntry, PreparedLog } from '../keys/index-definition.js';
import type { Storage } from '../storage.js';
import { CHANGE_SPACE } from '../format/key-spaces.js';
import { type ChangeEntry, decodeEntry, entryKey, OPERATIONS, seqOf } from './change-entry.js';

/** Batch size, in entries. */
const CHUNK = 64;
/** How long entries are looked at before others get their turn. */
const TURN_MS = 3;

/** Where a log is at a moment. */
export interface LogPoint {
  epoch: number;
  /** The number of the last change. */
  seq: number;
}

/** Which changes are looked for, and how many. */
export interface LogQuery {
  epoch: number;
  /** The number of the last change that is known. */
  after: number;
  /** The condition for finding a document as it is now. */
  filter: Filter;
  /** Only a document that met this is told of once it no longer does; it reads only fields that are kept first. */
  earlierAccess: Filter;
  /** The same for all its other fields; taken as met where a field that it reads is not known. */
  earlierConditions: Filter;
  limit: number;
  /** Of the documents found; one alone may be larger. */
  maxBytes: number;
  /**
   * Instead of judging by `earlierAccess` and `earlierConditions`, every changed document is told of together with what
   * it was before, from this many entries at most.
   */
  earlierOf?: number;
}

/** A document as it was before one of its changes. */
export interface DocumentBefore {
  bytes: Buffer;
  /** Fields may be missing. */
  isPartial: boolean;
  /** Also some that are to be kept first. */
  isCut: boolean;
}

/** A document after its changes: found, or lost since. */
export interface LoggedChange {
  id: unknown;
  at: number;
  /** Its BSON as it is now; null when it does not meet the filter any more. */
  document: Buffer | null;
  /** Its states before each change but an insert, where the search asks for them. */
  earlier?: DocumentBefore[];
}

export interface LoggedChanges {
  changes: LoggedChange[];
  /** The number of the last change that was looked at. */
  seq: number;
  /** Nothing was left when the last document was read. */
  isEnd: boolean;
}

/** The position of a collection's log as of this turn; null where nothing is logged, or since its last change. */
export function logPosition(storage: Storage, ns: string): LogPoint | null {
  const collection = storage.catalog.find(ns);
  if (collection?.log == null) return null;
  const { log } = storage.catalog.counts(collection.id);
  return log && pointOf(storage, log);
}

/** The end of a log. After a commit was taken back its numbers are used again: then they are of another epoch. */
export function pointOf({ environment }: Storage, { epoch, seq }: LogPoint): LogPoint {
  return { epoch: environment.commits.takenBack * 2 ** 32 + epoch, seq };
}

/**
 * The documents that were changed after `search.after` and that meet the filter, as they are when they are read, and
 * those that met it before one of these changes and do not now; in the order of the last change that was looked at.
 * Null when the log begins later, is another one, or does not know whether a document met it before.
 */
export async function readChanges(storage: Storage, ns: string, search: LogQuery): Promise<LoggedChanges | null> {
  const found = new Map<string, LoggedChange>();
  let seq = search.after;
  let bytes = 0;
  let left = search.earlierOf ?? Infinity;
  const isFull = (): boolean => found.size >= search.limit || bytes >= search.maxBytes || left <= 0;
  for (;;) {
    storage.refresh();
    const collection = storage.catalog.find(ns);
    const position = logPosition(storage, ns);
    if (!collection?.log || position?.epoch !== search.epoch || position.seq < seq) return null;
    const turn = new Turn(storage, collection, collection.log, search);
    const turnEnds = performance.now() + TURN_MS;
    let isHeld = false;
    while (seq < position.seq && !isHeld && performance.now() < turnEnds) {
      const entries = turn.entries(seq);
      // Numbers have no gaps: what is missing was trimmed, or is damage.
      if (entries === null) return null;
      for (const entry of entries) {
        const key = turn.examine(entry, found);
        if (turn.isUnknown) return null;
        if (key === null) {
          isHeld = true;
          break;
        }
        seq = entry.seq;
        bytes += found.get(key)?.document?.length ?? 0;
        if (search.earlierOf !== undefined) bytes += entry.earlier.length;
        left--;
        if (isFull() || performance.now() >= turnEnds) break;
      }
      if (isFull()) break;
    }
    if (isHeld || isFull() || seq >= position.seq) {
      return { changes: [...found.values()], seq, isEnd: isHeld || seq >= position.seq };
    }
    await nextTurn();
  }
}

/** A log and its documents as one turn of the event loop sees them. */
class Turn {
  /** Nobody can say whether the last document that was examined met the search before. */
  isUnknown = false;

  constructor(
    private readonly storage: Storage,
    private readonly collection: CollectionEntry,
    private readonly log: PreparedLog,
    private readonly search: LogQuery,
  ) {}

  /** The next entries after a number; null when the first of them is not there. */
  entries(after: number): ChangeEntry[] | null {
    const range = this.storage.environment.store.getRange({
      start: entryKey(this.log.id, after + 1),
      end: ownerKey(CHANGE_SPACE, this.log.id + 1),
      limit: CHUNK,
    });
    const entries: ChangeEntry[] = [];
    let expected = after + 1;
    for (const { key, value } of range) {
      if (seqOf(key) !== expected) break;
      expected++;
      decodeRecord(key, value, `A change in the log of ${this.collection.ns}`);
      entries.push(decodeEntry(key, value));
    }
    return entries.length === 0 ? null : entries;
  }

  /** Notes what an entry's document is now; its key in `found`, or null when nobody may be told of it yet. */
  examine(entry: ChangeEntry, found: Map<string, LoggedChange>): string | null {
    const { documents } = this.storage;
    const { search } = this;
    const idBytes = documents.encodeIdOf(entry.earlier);
    const key = idBytes.latin1Slice();
    const current = documents.read(this.collection, idBytes);
    const known = found.get(key);
    const isFound = current !== undefined && matches(search.filter, current);
    const document = isFound ? current : null;
    if (search.earlierOf !== undefined) {
      const earlier = known?.earlier ?? [];
      if (entry.operation !== OPERATIONS.insert) {
        earlier.push({ bytes: Buffer.from(entry.earlier), isPartial: entry.isPartial, isCut: entry.isCut });
      }
      found.delete(key);
      found.set(key, { id: readId(entry.earlier), at: entry.at, document, earlier });
      return key;
    }
    if (isFound || known !== undefined || this.metBefore(entry)) {
      found.delete(key);
      found.set(key, { id: readId(entry.earlier), at: entry.at, document });
    }
    return key;
  }

  private metBefore({ operation, earlier, isPartial, isCut }: ChangeEntry): boolean {
    if (operation === OPERATIONS.insert) return false;
    const { earlierAccess, earlierConditions } = this.search;
    const doc = decodeDocument(earlier);
    if (!earlierAccess.matches(doc)) {
      this.isUnknown = isCut && lacks(doc, earlierAccess.fields);
      return false;
    }
    return (isPartial && lacks(doc, earlierConditions.fields)) || earlierConditions.matches(doc);
  }
}

function lacks(doc: object, fields: ReadonlySet<string> | null): boolean {
  return fields === null || [...fields].some((name) => !Object.hasOwn(doc, name));
}

function matches(filter: Filter, bytes: Buffer): boolean {
  return filter.testBytes(bytes) ?? filter.matches(decodeDocument(bytes, 'engine', filter.fields ?? undefined));
}
