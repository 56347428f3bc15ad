import { decodeDocument } from '../codec/decode.js';
import type { Doc } from '../codec/document.js';
import { readId } from '../codec/raw.js';
import type { Catalog } from './catalog/catalog.js';
import { checksum } from './format/checksum.js';
import type { CommitQueue } from './commit-queue.js';
import { damagedDocument, damagedEntry, missingDocument } from './storage-error.js';
import { checkGrowth, checkId, checkSize, isTaken, type GrowthBound } from './checks/document-checks.js';
import { duplicateKey, firstValue } from './catalog/duplicate-key.js';
import type { Environment } from './file/environment.js';
import { DOCUMENT_SPACE } from './format/key-spaces.js';
import type { CollectionEntry, IndexEntry } from './keys/index-definition.js';
import { EntryBudget } from './keys/entry-budget.js';
import { type IndexKeys, indexKeysOf, keysWithout, reads } from './keys/index-keys.js';
import type { NewDocument } from './keys/new-document.js';
import { OPERATIONS } from './log/change-entry.js';
import { ChangeWriter } from './log/change-writer.js';
import { countedValue } from './catalog/kept-counts.js';
import { KeyWriter, MAX_ID_BYTES, objectIdKey } from './encoding/key-encoding.js';
import {
  contentOf,
  isSealIntact,
  seal,
  sealDocument,
  sealedBson,
  storedSum,
  SUM_BYTES,
  entrySum,
} from './format/stored-form.js';

/** Reads and writes documents together with their index entries. Writes must run inside a transaction of the queue. */
export class Documents {
  private readonly writer = new KeyWriter();
  private readonly idWriter = new KeyWriter();
  private readonly changeLog: ChangeWriter;

  constructor(
    private readonly environment: Environment,
    private readonly catalog: Catalog,
    private readonly queue: CommitQueue,
    private readonly growth: GrowthBound | null = null,
  ) {
    this.changeLog = new ChangeWriter(catalog, queue);
  }

  /** The encoded form of an `_id`: what documents are clustered on and index entries point with. */
  encodeId(id: unknown): Buffer {
    return this.idWriter.restart().component(id, false, MAX_ID_BYTES).take();
  }

  /**
   * The document of an index entry with this value, which may lie in the buffer that this read overwrites, as does the
   * answer. `entrySum` is the checksum of the entry's key. Throws DAMAGED when either is not as it was stored.
   */
  readByEntry(collection: CollectionEntry, index: IndexEntry, entrySum: number, value: Buffer): Buffer {
    const { writer } = this;
    if (!isSealIntact(entrySum, value)) throw damagedEntry(collection.ns, index.definition.name);
    writer.reset(DOCUMENT_SPACE, collection.id);
    writer.shared(value, 1, value.length - SUM_BYTES);
    const stored = this.environment.reader.get(writer);
    if (stored === undefined) throw missingDocument(collection.ns, index.definition.name, writer.take().subarray(5));
    return this.open(collection, writer.sum(), stored, () => writer.view().subarray(5));
  }

  /** The value under a key, in a buffer that the next read overwrites. */
  readKey(key: Buffer): Buffer | undefined {
    return this.environment.reader.get(this.writer.restart().raw(key));
  }

  /** The checksum of the key that `readKey` was last given. */
  readKeySum(): number {
    return this.writer.sum();
  }

  /**
   * The BSON in the value that is stored under a document's key, in the same memory. Throws DAMAGED when it is not as
   * it was stored; `idBytes` is only asked then.
   */
  open(collection: CollectionEntry, keySum: number, value: Buffer, idBytes: () => Buffer): Buffer {
    const bson = sealedBson(keySum, value);
    if (bson === null) throw damagedDocument(collection.ns, Buffer.from(idBytes()));
    return bson;
  }

  /**
   * To be called where nothing was found under a key of a document, or of a unique index: what was there may have a
   * damaged key now, and lies beside the place. Throws DAMAGED.
   */
  checkNeighbours(collection: CollectionEntry, index: IndexEntry | null, key: Buffer): void {
    const { reader } = this.environment;
    const space = key.subarray(0, 5);
    const ranges = [
      { start: key, end: Buffer.concat([space, AFTER]), limit: 1 },
      { start: key, end: space, limit: 1, reverse: true },
    ];
    for (const range of ranges) {
      for (const { value } of reader.range(range)) {
        const keySum = reader.keySum();
        if (index === null) {
          this.open(collection, keySum, value, () => reader.lastKey().subarray(5));
        } else if (!isSealIntact(keySum, value)) {
          throw damagedEntry(collection.ns, index.definition.name);
        }
      }
    }
  }

  /** A copy of the stored document, undefined when there is none. Throws DAMAGED. */
  read(collection: CollectionEntry, idBytes: Buffer): Buffer | undefined {
    const { writer } = this;
    const stored = this.environment.reader.get(writer.reset(DOCUMENT_SPACE, collection.id).shared(idBytes));
    if (stored === undefined) return undefined;
    const bytes = this.open(collection, writer.sum(), stored, () => idBytes);
    return Buffer.from(bytes.subarray(0, bytes.length));
  }

  /**
   * Stores a new document whose `_id` comes first. Throws 11000, and 10334, 53, 171 or 257 for documents that cannot be
   * stored; nothing is written then. `budget`: of its index entries.
   */
  insert(collection: CollectionEntry, bytes: Buffer, budget = new EntryBudget()): void {
    this.store(collection, this.prepare(collection, bytes, budget));
  }

  /**
   * Stores all of the new documents, or throws as `insert` does and stores none; 257 when it would take too long in one
   * transaction.
   */
  insertTogether(collection: CollectionEntry, documents: readonly Buffer[]): void {
    const taken = new Set<string>();
    const prepared: NewDocument[] = [];
    const budget = new EntryBudget();
    for (const bytes of documents) {
      budget.take(1);
      prepared.push(this.prepare(collection, bytes, budget, taken));
    }
    for (const document of prepared) this.store(collection, document);
  }

  /** Checks and encodes a document to be stored. `taken`: unique keys of those before it, which are not stored yet. */
  private prepare(collection: CollectionEntry, bytes: Buffer, budget: EntryBudget, taken?: Set<string>): NewDocument {
    checkSize(bytes);
    const doc = decodeDocument(bytes, 'engine', collection.indexedFields);
    checkId(doc['_id']);
    const idBytes = this.encodeId(doc['_id']);
    const isLong = this.idWriter.cut;
    const key = this.writer.reset(DOCUMENT_SPACE, collection.id).raw(idBytes).take();
    const keySum = this.writer.sum();
    if (this.environment.store.getBinaryFast(key) !== undefined || isTaken(key, taken)) {
      throw duplicateKey(collection.ns, '_id_', { _id: 1 }, [doc['_id']]);
    }
    const entries = collection.indexes.map((index) => indexKeysOf(index, doc, idBytes, this.writer, budget));
    collection.indexes.forEach((index, n) => {
      this.checkUnique(collection, index, entries[n]!.keys, doc, idBytes, taken);
    });
    const value = sealDocument(keySum, bytes);
    return { key, bytes, value, idBytes, isLong, entries, counted: countedValue(collection, doc) };
  }

  private store(collection: CollectionEntry, document: NewDocument): void {
    const { key, bytes, value, idBytes, isLong, entries, counted } = document;
    this.queue.insert(key, value);
    this.changeLog.append(collection, OPERATIONS.insert, bytes);
    for (const [n, index] of collection.indexes.entries()) {
      this.putEntries(collection, index, entries[n]!.keys, idBytes);
    }
    const changes = this.catalog.changesOf(collection.id);
    changes.sums.writes++;
    changes.addDocument(1, bytes.length, storedSum(value), counted);
    this.noteShapes(collection, collection.indexes, entries);
    if (isLong && collection.definition.longIds !== true) {
      this.catalog.save({ ...(this.catalog.find(collection.ns) ?? collection).definition, longIds: true });
    }
  }

  /** The encoded `_id` of a stored document. */
  encodeIdOf(bytes: Buffer): Buffer {
    const objectId = objectIdKey(bytes);
    return objectId ?? this.encodeId(readId(bytes));
  }

  /**
   * Replaces a stored document by one with the same `_id`; throws as `insert` does. `touched` are the only top-level
   * fields that may differ, null when any may.
   */
  replace(
    collection: CollectionEntry,
    idBytes: Buffer,
    before: Buffer,
    after: Buffer,
    touched: ReadonlySet<string> | null,
  ): void {
    checkSize(after);
    checkGrowth(collection.ns, before.length, after.length, touched, this.growth);
    const indexes = touched === null ? collection.indexes : collection.indexes.filter((index) => reads(index, touched));
    if (indexes.length > 0) this.replaceEntries(collection, indexes, idBytes, before, after);
    const key = this.writer.reset(DOCUMENT_SPACE, collection.id).raw(idBytes).take();
    const keySum = this.writer.sum();
    const value = sealDocument(keySum, after);
    this.queue.put(key, value);
    this.changeLog.append(collection, OPERATIONS.update, before, touched);
    const { sums } = this.catalog.changesOf(collection.id);
    sums.writes++;
    sums.bytes += after.length - before.length;
    const { countField } = collection;
    // The counted field is the same unless it was touched.
    const recounts = countField !== null && (touched === null || touched.has(collection.definition.countBy!));
    const countedIn = recounts ? countedValue(collection, decodeDocument(after, 'engine', countField)) : undefined;
    const countedOut = recounts ? countedValue(collection, decodeDocument(before, 'engine', countField)) : undefined;
    const changes = this.catalog.changesOf(collection.id);
    changes.addDigest(-1, checksum(keySum, before, before.length), countedOut);
    changes.addDigest(1, storedSum(value), countedIn);
  }

  private replaceEntries(
    collection: CollectionEntry,
    indexes: readonly IndexEntry[],
    idBytes: Buffer,
    before: Buffer,
    after: Buffer,
  ): void {
    const oldDoc = decodeDocument(before, 'engine', collection.indexedFields);
    const newDoc = decodeDocument(after, 'engine', collection.indexedFields);
    const added: { index: IndexEntry; keys: Buffer[] }[] = [];
    const removed: { index: IndexEntry; keys: Buffer[] }[] = [];
    const had = new EntryBudget(Infinity);
    const olds = indexes.map((index) => indexKeysOf(index, oldDoc, idBytes, this.writer, had).keys);
    // What was stored before there was a bound may stay as large as it is.
    const budget = new EntryBudget(Math.max(EntryBudget.MOST, had.taken));
    const entries = indexes.map((index, n) => {
      const old = olds[n]!;
      const next = indexKeysOf(index, newDoc, idBytes, this.writer, budget);
      // While an index is being built, the unchanged entries may not be there yet; putting them again is harmless.
      const fresh = index.definition.state === 'building' ? next.keys : keysWithout(next.keys, old);
      added.push({ index, keys: fresh });
      removed.push({ index, keys: keysWithout(old, next.keys) });
      this.checkUnique(collection, index, fresh, newDoc, idBytes);
      return next;
    });
    for (const { index, keys } of removed) this.removeEntries(collection, index, keys, idBytes);
    for (const { index, keys } of added) this.putEntries(collection, index, keys, idBytes);
    this.noteShapes(collection, indexes, entries);
  }

  delete(collection: CollectionEntry, idBytes: Buffer, before: Buffer): void {
    const doc = decodeDocument(before, 'engine', collection.indexedFields);
    for (const index of collection.indexes) {
      this.removeEntries(collection, index, indexKeysOf(index, doc, idBytes, this.writer).keys, idBytes);
    }
    const key = this.writer.reset(DOCUMENT_SPACE, collection.id).raw(idBytes).take();
    const keySum = this.writer.sum();
    this.queue.remove(key);
    this.changeLog.append(collection, OPERATIONS.remove, before);
    const changes = this.catalog.changesOf(collection.id);
    changes.sums.writes++;
    changes.sums.documents--;
    changes.sums.bytes -= before.length;
    changes.addDigest(-1, checksum(keySum, before, before.length), countedValue(collection, doc));
  }

  /** Adds the entries of an existing document to an index that is being built. Throws 11000 as an insert would. */
  addToIndex(collection: CollectionEntry, index: IndexEntry, bytes: Buffer): void {
    const doc = decodeDocument(bytes, 'engine', collection.indexedFields);
    const idBytes = this.encodeId(doc['_id']);
    const entries = indexKeysOf(index, doc, idBytes, this.writer);
    this.checkUnique(collection, index, entries.keys, doc, idBytes);
    this.putEntries(collection, index, entries.keys, idBytes);
    this.noteShape(collection, index, entries);
  }

  private putEntries(collection: CollectionEntry, index: IndexEntry, keys: readonly Buffer[], idBytes: Buffer): void {
    if (keys.length === 0) return;
    const changes = this.catalog.changesOf(collection.id);
    for (const key of keys) {
      const value = seal(checksum(0, key, key.length), idBytes);
      // An index that is being built may have the entry already.
      const isThere = index.definition.state === 'building' && this.environment.store.doesExist(key);
      if (!isThere) {
        changes.addEntry(index.definition.id, 1, storedSum(value));
      }
      this.queue.put(key, value);
    }
  }

  private checkUnique(
    collection: CollectionEntry,
    index: IndexEntry,
    keys: readonly Buffer[],
    doc: Doc,
    idBytes: Buffer,
    taken?: Set<string>,
  ): void {
    if (!index.definition.unique) return;
    for (const key of keys) {
      const owner = this.environment.store.getBinaryFast(key);
      const isFree = owner === undefined || idBytes.equals(contentOf(owner));
      if (isFree && !isTaken(key, taken)) continue;
      const values = index.fields.map((field) => firstValue(doc, field.parts));
      throw duplicateKey(collection.ns, index.definition.name, index.definition.key, values);
    }
  }

  private removeEntries(
    collection: CollectionEntry,
    index: IndexEntry,
    keys: readonly Buffer[],
    idBytes: Buffer,
  ): void {
    const { unique, state, id } = index.definition;
    for (const key of keys) {
      // Only of an index that is ready there is no doubt that the entry is there.
      if (unique || state !== 'ready') {
        // While a unique index is being built the key may belong to another document.
        const owner = this.environment.store.getBinaryFast(key);
        if (owner === undefined || (unique && !idBytes.equals(contentOf(owner)))) continue;
      }
      this.queue.remove(key);
      this.catalog.changesOf(collection.id).addEntry(id, -1, entrySum(key, idBytes));
    }
  }

  private noteShapes(collection: CollectionEntry, indexes: readonly IndexEntry[], entries: readonly IndexKeys[]): void {
    for (let n = 0; n < entries.length; n++) this.noteShape(collection, indexes[n]!, entries[n]!);
  }

  /** The planner must know about arrays and cut keys before such an entry can be read. */
  private noteShape(collection: CollectionEntry, { definition }: IndexEntry, entries: IndexKeys): void {
    if ((definition.multikey | entries.multikey) === definition.multikey && (definition.cut || !entries.cut)) return;
    // Another document of the same command may have changed the definition already.
    const current = this.catalog.find(collection.ns) ?? collection;
    const known = current.definition.indexes.find((index) => index.id === definition.id) ?? definition;
    const multikey = known.multikey | entries.multikey;
    const cut = known.cut || entries.cut;
    if (multikey === known.multikey && cut === known.cut) return;
    this.catalog.changeIndex(current, definition.id, { multikey, cut });
  }
}

/** Above every byte with which an `_id` or a component of a key can begin. */
const AFTER = Uint8Array.of(0xff);
