import { randomInt, randomUUID } from 'node:crypto';
import type { Transaction } from 'lmdb';
import { Binary } from '../../codec/bson.js';
import { decodeDefinition, decodeRecord, encodeDefinition, encodeRecord } from './catalog-records.js';
import type { CommitQueue } from '../commit-queue.js';
import type { Environment } from '../file/environment.js';
import {
  CHANGE_SPACE,
  COLLECTION_SPACE,
  COUNTER_SPACE,
  DOCUMENT_SPACE,
  DROPPED_SPACE,
  INDEX_SPACE,
  META_SPACE,
  VERSION_KEY,
} from '../format/key-spaces.js';
import type {
  CollectionDefinition,
  CollectionEntry,
  IndexDefinition,
  KeptCounts,
  LogCounts,
  LogSettings,
} from '../keys/index-definition.js';
import { CountChanges, decodeCounts, encodeCounts, noCounts } from './kept-counts.js';
import { KeyWriter } from '../encoding/key-encoding.js';
import { contentOf } from '../format/stored-form.js';
import { prepareCollection } from './prepare-collection.js';

const NEXT_ID_KEY = Buffer.from([META_SPACE, ...Buffer.from('next')]);

const ROUGH_COUNT_MS = 1000;
const MAX_ROUGH_COUNTS = 1000;

/**
 * The collections and indexes of the data file. Other processes change it too: `refresh` compares its version and
 * drops what was remembered, and must run at the start of every command, turn and transaction.
 */
export class Catalog {
  version = -1;
  private changed = false;
  private readonly writer = new KeyWriter();
  private readonly known = new Map<string, CollectionEntry>();
  private readonly changes = new Map<number, CountChanges>();
  private readonly roughCounts = new Map<number, { documents: number; readAt: number }>();
  private queue!: CommitQueue;

  constructor(
    private readonly environment: Environment,
    private readonly countBy: string | undefined,
  ) {}

  /** The queue through whose transactions this catalog is changed; set once, because the two need each other. */
  attach(queue: CommitQueue): void {
    this.queue = queue;
  }

  /** Forgets what another process changed. Must run inside the snapshot or transaction that is then read. */
  refresh(): void {
    const record = this.environment.store.getBinaryFast(VERSION_KEY);
    const version = record === undefined ? 0 : record.readUIntBE(1, 6);
    if (version === this.version) return;
    this.version = version;
    this.known.clear();
  }

  find(ns: string): CollectionEntry | null {
    const known = this.known.get(ns);
    if (known !== undefined) return known;
    // Names of nothing are not remembered: there is no end to what may be asked for.
    const key = collectionKey(ns);
    const record = this.environment.store.getBinary(key);
    if (record === undefined) return null;
    const entry = prepareCollection(decodeDefinition(key, Buffer.from(record)));
    this.known.set(ns, entry);
    return entry;
  }

  /** The collection as an older transaction has it. */
  findIn(transaction: Transaction, ns: string): CollectionEntry | null {
    const key = collectionKey(ns);
    const record = this.environment.store.get(key, { transaction });
    return record === undefined ? null : prepareCollection(decodeDefinition(key, Buffer.from(record)));
  }

  /** All collections whose namespace begins with `prefix`, by name. */
  list(prefix: string): CollectionEntry[] {
    const start = collectionKey(prefix);
    const range = this.environment.store.getRange({ start, end: Buffer.concat([start, Buffer.from([0xff])]) });
    const definitions: CollectionDefinition[] = [];
    for (const { key, value } of range) definitions.push(decodeDefinition(key, value));
    return definitions.map((definition) => this.find(definition.ns)!);
  }

  /** Makes a collection with nothing but its `_id` index. Inside a transaction, after checking that there is none. */
  create(ns: string): CollectionEntry {
    return this.save({
      id: this.takeId(),
      ns,
      uuid: new Binary(Buffer.from(randomUUID().replaceAll('-', ''), 'hex'), Binary.SUBTYPE_UUID),
      options: {},
      indexes: [],
      ...(this.countBy === undefined ? {} : { countBy: this.countBy }),
    });
  }

  /** Stores a changed definition. Inside a transaction. */
  save(definition: CollectionDefinition): CollectionEntry {
    const key = collectionKey(definition.ns);
    this.queue.put(key, encodeDefinition(key, definition));
    this.changed = true;
    const entry = prepareCollection(definition);
    this.known.set(definition.ns, entry);
    return entry;
  }

  /** Takes the collection out of the catalog; its documents and entries are reclaimed in batches later. */
  drop(entry: CollectionEntry): void {
    this.queue.remove(collectionKey(entry.ns));
    this.discard(DOCUMENT_SPACE, entry.id);
    if (entry.log !== null) this.discard(CHANGE_SPACE, entry.log.id);
    for (const index of entry.indexes) this.discard(INDEX_SPACE, index.definition.id);
    this.queue.remove(ownerKey(COUNTER_SPACE, entry.id));
    this.changes.delete(entry.id);
    this.known.delete(entry.ns);
    this.changed = true;
  }

  rename(entry: CollectionEntry, ns: string): void {
    this.queue.remove(collectionKey(entry.ns));
    this.known.delete(entry.ns);
    this.save({ ...entry.definition, ns });
  }

  /** Changes one index of a collection, or removes it with `null`. Inside a transaction. */
  changeIndex(entry: CollectionEntry, id: number, change: Partial<IndexDefinition> | null): CollectionEntry {
    const indexes = entry.definition.indexes.flatMap((index) => {
      if (index.id !== id) return [index];
      return change === null ? [] : [{ ...index, ...change }];
    });
    if (change === null) {
      this.discard(INDEX_SPACE, id);
      this.changesOf(entry.id).dropIndex(id);
    }
    return this.save({ ...entry.definition, indexes });
  }

  takeId(): number {
    const record = this.environment.store.getBinary(NEXT_ID_KEY);
    const id = record === undefined ? 1 : decodeRecord(NEXT_ID_KEY, Buffer.from(record), 'The next id').readUInt32BE(0);
    this.putNextId(id + 1);
    return id;
  }

  /** No id below `next` is given from now on. Inside a transaction. */
  skipIds(next: number): void {
    const record = this.environment.store.getBinary(NEXT_ID_KEY);
    const known = record === undefined ? 1 : contentOf(Buffer.from(record)).readUInt32BE(0);
    if (known < next) this.putNextId(next);
  }

  private putNextId(id: number): void {
    const next = Buffer.alloc(4);
    next.writeUInt32BE(id);
    this.queue.put(NEXT_ID_KEY, encodeRecord(NEXT_ID_KEY, next));
  }

  /** Remembers a key space to be emptied: (kind, owner) pairs that nothing refers to any more. */
  private discard(kind: number, owner: number): void {
    this.discardPrefix(ownerKey(kind, owner));
  }

  private discardPrefix(prefix: Buffer): void {
    const key = Buffer.concat([Buffer.from([DROPPED_SPACE]), prefix]);
    this.queue.put(key, encodeRecord(key, Buffer.from([1])));
  }

  /** The prefixes of keys that are left over from drops, of `most` drops. */
  discarded(most = Infinity): Buffer[] {
    const prefixes: Buffer[] = [];
    const range = this.environment.store.getRange({
      start: Buffer.from([DROPPED_SPACE]),
      end: Buffer.from([DROPPED_SPACE + 1]),
      ...(most < Infinity && { limit: most }),
    });
    for (const { key, value } of range) {
      // What a damaged key names may be somebody's data.
      decodeRecord(key, value, 'A note of dropped data');
      prefixes.push(Buffer.from(key.subarray(1)));
    }
    return prefixes;
  }

  /** The key space of `prefix` is empty now. Inside a transaction. */
  reclaimed(prefix: Buffer): void {
    this.queue.remove(Buffer.concat([Buffer.from([DROPPED_SPACE]), prefix]));
  }

  /** The counts of a collection, with the changes of the current transaction so far. Throws DAMAGED. */
  counts(id: number): KeptCounts {
    const stored = this.storedCounts(id);
    const change = this.changes.get(id);
    return change === undefined ? stored : change.applyTo(stored);
  }

  /** The counts of a collection as of the reader's snapshot; null before its first document. */
  countsSeen(id: number): KeptCounts | null {
    const record = this.environment.reader.get(this.writer.reset(COUNTER_SPACE, id));
    if (record === undefined) return null;
    return decodeCounts(decodeRecord(ownerKey(COUNTER_SPACE, id), record, countName(id)));
  }

  private storedCounts(id: number): KeptCounts {
    const key = ownerKey(COUNTER_SPACE, id);
    // Every write reads it: decoded at once, it needs no memory of its own.
    const record = this.environment.store.getBinaryFast(key);
    if (record === undefined) return noCounts();
    return decodeCounts(decodeRecord(key, record.subarray(0, record.length), countName(id)));
  }

  /** About how many documents a collection has: as many as at some moment of the last second. */
  roughDocuments(id: number): number {
    const now = performance.now();
    let rough = this.roughCounts.get(id);
    if (rough === undefined || now - rough.readAt > ROUGH_COUNT_MS) {
      if (this.roughCounts.size >= MAX_ROUGH_COUNTS) this.roughCounts.clear();
      rough = { documents: this.counts(id).documents, readAt: now };
      this.roughCounts.set(id, rough);
    }
    return rough.documents;
  }

  /** The current transaction's changes to the counts of a collection; it writes the sums once at its end. */
  changesOf(id: number): CountChanges {
    let changes = this.changes.get(id);
    if (changes === undefined) this.changes.set(id, (changes = new CountChanges()));
    return changes;
  }

  /**
   * Where a collection's log ends; the object is the current transaction's, so changes of it are stored at its end.
   * One that is out of step begins again.
   */
  logOf(id: number): LogCounts {
    const changes = this.changesOf(id);
    if (changes.log) return changes.log;
    const { log, writes } = (changes.stored ??= this.storedCounts(id));
    changes.log = log === null ? newLog(writes + changes.sums.writes) : { ...log };
    return changes.log;
  }

  /** Begins the log of a collection, or gives the one that it has these settings. Inside a transaction. */
  beginLog(entry: CollectionEntry, settings: LogSettings): void {
    this.logOf(entry.id);
    this.save({ ...entry.definition, log: { id: entry.log?.id ?? this.takeId(), ...settings } });
  }

  /** Ends the log of a collection; its entries are reclaimed in batches later. Inside a transaction. */
  endLog(entry: CollectionEntry): void {
    if (entry.log === null) return;
    const { log: _log, ...definition } = entry.definition;
    this.save(definition);
    this.changesOf(entry.id).log = null;
    this.discard(CHANGE_SPACE, entry.log.id);
  }

  beginTransaction(): void {
    this.changes.clear();
    this.changed = false;
    this.refresh();
  }

  finishTransaction(): void {
    for (const [id, change] of this.changes) {
      const key = ownerKey(COUNTER_SPACE, id);
      this.queue.put(key, encodeRecord(key, encodeCounts(change.applyTo(change.stored ?? this.storedCounts(id)))));
    }
    this.changes.clear();
    if (!this.changed) return;
    this.version++;
    const record = Buffer.alloc(6);
    record.writeUIntBE(this.version, 0, 6);
    this.queue.put(VERSION_KEY, encodeRecord(VERSION_KEY, record));
    this.changed = false;
  }

  /** After an aborted transaction nothing that was remembered can be trusted. */
  forget(): void {
    this.version = -1;
    this.known.clear();
    this.changes.clear();
    this.changed = false;
  }
}

/** The end of a log that begins; its numbers go on above those of any log that the collection had before. */
export function newLog(seq: number): LogCounts {
  return { epoch: randomInt(2 ** 32 - 1) + 1, seq, bytes: 0, erased: seq };
}

function countName(id: number): string {
  return `The count of the collection with the id ${id}`;
}

function collectionKey(ns: string): Buffer {
  return Buffer.concat([Buffer.from([COLLECTION_SPACE]), Buffer.from(ns)]);
}

/** The prefix of all keys of one kind that belong to a collection or an index. */
export function ownerKey(kind: number, owner: number): Buffer {
  const key = Buffer.alloc(5);
  key[0] = kind;
  key.writeUInt32BE(owner, 1);
  return key;
}
