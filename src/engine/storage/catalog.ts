import { randomUUID } from 'node:crypto';
import { decodeDocument } from '../codec/decode.js';
import { encodeDocument } from '../codec/encode.js';
import { type Doc } from '../codec/document.js';
import { Binary } from '../codec/bson.js';
import { compileFilter } from '../query/match.js';
import { type CommitQueue } from './commit-queue.js';
import { COLLECTION, COUNTER, DOCUMENT, DROPPED, type Environment, INDEX_ENTRY, META } from './environment.js';
import {
  type CollectionDefinition,
  type CollectionEntry,
  type IndexDefinition,
  type IndexEntry,
} from './index-definition.js';
import { componentLimit } from './key-encoding.js';

const VERSION_KEY = Buffer.from([META, ...Buffer.from('version')]);
const NEXT_ID_KEY = Buffer.from([META, ...Buffer.from('next')]);

const ROUGH_COUNT_MS = 1000;
const MOST_ROUGH_COUNTS = 1000;

/** How many documents a collection has and their size in bytes. */
export interface CollectionSize {
  documents: number;
  bytes: number;
}

/**
 * The collections and indexes of the data file. Other processes change it too: `refresh` compares its version and
 * drops what was remembered, and must run at the start of every command, turn and transaction.
 */
export class Catalog {
  private version = -1;
  private changed = false;
  private readonly known = new Map<string, CollectionEntry>();
  private readonly sizeChanges = new Map<number, CollectionSize>();
  private readonly roughCounts = new Map<number, { documents: number; readAt: number }>();
  private queue!: CommitQueue;

  constructor(private readonly environment: Environment) {}

  /** The queue through whose transactions this catalog is changed; set once, because the two need each other. */
  attach(queue: CommitQueue): void {
    this.queue = queue;
  }

  /** Forgets what another process changed. Must run inside the snapshot or transaction that is then read. */
  refresh(): void {
    const record = this.environment.store.getBinaryFast(VERSION_KEY);
    const version = record === undefined ? 0 : record.readUIntBE(2, 6);
    if (version === this.version) return;
    this.version = version;
    this.known.clear();
  }

  find(ns: string): CollectionEntry | null {
    const known = this.known.get(ns);
    if (known !== undefined) return known;
    // Names of nothing are not remembered: there is no end to what may be asked for.
    const record = this.environment.store.getBinary(collectionKey(ns));
    if (record === undefined) return null;
    const entry = this.prepare(decodeDefinition(record));
    this.known.set(ns, entry);
    return entry;
  }

  /** All collections whose namespace begins with `prefix`, by name. */
  list(prefix: string): CollectionEntry[] {
    const start = collectionKey(prefix);
    const range = this.environment.store.getRange({ start, end: Buffer.concat([start, Buffer.from([0xff])]) });
    const definitions: CollectionDefinition[] = [];
    for (const { value } of range) definitions.push(decodeDefinition(value));
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
    });
  }

  /** Stores a changed definition. Inside a transaction. */
  save(definition: CollectionDefinition): CollectionEntry {
    this.queue.put(collectionKey(definition.ns), encodeDocument(definition as unknown as Doc));
    this.changed = true;
    const entry = this.prepare(definition);
    this.known.set(definition.ns, entry);
    return entry;
  }

  /** Takes the collection out of the catalog; its documents and entries are reclaimed in batches later. */
  drop(entry: CollectionEntry): void {
    this.queue.remove(collectionKey(entry.ns));
    this.discard(DOCUMENT, entry.id);
    for (const index of entry.indexes) this.discard(INDEX_ENTRY, index.definition.id);
    this.queue.remove(ownerKey(COUNTER, entry.id));
    this.sizeChanges.delete(entry.id);
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
    if (change === null) this.discard(INDEX_ENTRY, id);
    return this.save({ ...entry.definition, indexes });
  }

  takeId(): number {
    const record = this.environment.store.getBinary(NEXT_ID_KEY);
    const id = record === undefined ? 1 : Buffer.from(record).readUInt32BE(0);
    const next = Buffer.alloc(4);
    next.writeUInt32BE(id + 1);
    this.queue.put(NEXT_ID_KEY, next);
    return id;
  }

  /** Remembers a key space to be emptied: (kind, owner) pairs that nothing refers to any more. */
  private discard(kind: number, owner: number): void {
    this.queue.put(Buffer.concat([Buffer.from([DROPPED]), ownerKey(kind, owner)]), Buffer.from([1]));
  }

  /** The prefixes of all keys that are left over from drops. */
  discarded(): Buffer[] {
    const prefixes: Buffer[] = [];
    for (const key of this.environment.store.getKeys({
      start: Buffer.from([DROPPED]),
      end: Buffer.from([DROPPED + 1]),
    })) {
      prefixes.push(Buffer.from(key.subarray(1)));
    }
    return prefixes;
  }

  /** The key space of `prefix` is empty now. Inside a transaction. */
  reclaimed(prefix: Buffer): void {
    this.queue.remove(Buffer.concat([Buffer.from([DROPPED]), prefix]));
  }

  size(id: number): CollectionSize {
    const record = this.environment.store.getBinary(ownerKey(COUNTER, id));
    const stored = record === undefined ? { documents: 0, bytes: 0 } : decodeSize(Buffer.from(record));
    const change = this.sizeChanges.get(id);
    return change === undefined
      ? stored
      : { documents: stored.documents + change.documents, bytes: stored.bytes + change.bytes };
  }

  /** About how many documents a collection has: as many as at some moment of the last second. */
  roughDocuments(id: number): number {
    const now = performance.now();
    let rough = this.roughCounts.get(id);
    if (rough === undefined || now - rough.readAt > ROUGH_COUNT_MS) {
      if (this.roughCounts.size >= MOST_ROUGH_COUNTS) this.roughCounts.clear();
      rough = { documents: this.size(id).documents, readAt: now };
      this.roughCounts.set(id, rough);
    }
    return rough.documents;
  }

  /** Counts documents in or out. Inside a transaction, which writes the sums once at its end. */
  addSize(id: number, documents: number, bytes: number): void {
    const change = this.sizeChanges.get(id);
    if (change === undefined) {
      this.sizeChanges.set(id, { documents, bytes });
    } else {
      change.documents += documents;
      change.bytes += bytes;
    }
  }

  beginTransaction(): void {
    this.sizeChanges.clear();
    this.changed = false;
    this.refresh();
  }

  finishTransaction(): void {
    for (const [id, change] of this.sizeChanges) {
      if (change.documents === 0 && change.bytes === 0) continue;
      const stored = this.environment.store.getBinary(ownerKey(COUNTER, id));
      const size = stored === undefined ? { documents: 0, bytes: 0 } : decodeSize(Buffer.from(stored));
      const record = Buffer.alloc(16);
      record.writeDoubleBE(size.documents + change.documents, 0);
      record.writeDoubleBE(size.bytes + change.bytes, 8);
      this.queue.put(ownerKey(COUNTER, id), record);
    }
    this.sizeChanges.clear();
    if (!this.changed) return;
    this.version++;
    const record = Buffer.alloc(8);
    record.writeUIntBE(this.version, 2, 6);
    this.queue.put(VERSION_KEY, record);
    this.changed = false;
  }

  /** After an aborted transaction nothing that was remembered can be trusted. */
  forget(): void {
    this.version = -1;
    this.known.clear();
    this.sizeChanges.clear();
    this.changed = false;
  }

  private prepare(definition: CollectionDefinition): CollectionEntry {
    const indexedFields = new Set<string>(['_id']);
    const conditionFields = new Set<string>();
    const indexes = definition.indexes.map((index): IndexEntry => {
      const fields = Object.keys(index.key).map((path) => {
        const parts = path.split('.');
        indexedFields.add(parts[0]!);
        return { path, parts, descending: Number(index.key[path]) < 0 };
      });
      const limit = componentLimit(fields.length);
      const roots = fields.map((field) => field.parts[0]!);
      if (index.partialFilterExpression === undefined) {
        return { definition: index, fields, partial: null, condition: null, reads: new Set(roots), limit };
      }
      const filter = compileFilter(index.partialFilterExpression);
      for (const field of filter.fields ?? []) indexedFields.add(field);
      const condition = filter.residual ? 'unknown' : filter.conjuncts;
      for (const { path, op } of filter.conjuncts) if (op !== 'exists') conditionFields.add(path);
      const reads = filter.fields === null ? null : new Set([...roots, ...filter.fields]);
      return { definition: index, fields, partial: (doc) => filter.matches(doc), condition, reads, limit };
    });
    return { definition, id: definition.id, ns: definition.ns, indexes, indexedFields, conditionFields };
  }
}

function collectionKey(ns: string): Buffer {
  return Buffer.concat([Buffer.from([COLLECTION]), Buffer.from(ns)]);
}

/** The prefix of all keys of one kind that belong to a collection or an index. */
export function ownerKey(kind: number, owner: number): Buffer {
  const key = Buffer.alloc(5);
  key[0] = kind;
  key.writeUInt32BE(owner, 1);
  return key;
}

function decodeDefinition(record: Uint8Array): CollectionDefinition {
  return decodeDocument(Buffer.from(record)) as unknown as CollectionDefinition;
}

function decodeSize(record: Buffer): CollectionSize {
  return { documents: record.readDoubleBE(0), bytes: record.readDoubleBE(8) };
}
