import { decodeDocument } from '../codec/decode.js';
import { type Doc, isDocument } from '../codec/document.js';
import { readId } from '../codec/raw.js';
import { EngineError } from '../errors.js';
import { type Catalog } from './catalog.js';
import { type CommitQueue } from './commit-queue.js';
import { duplicateKey } from './duplicate-key.js';
import { DOCUMENT, type Environment } from './environment.js';
import { type CollectionEntry, type IndexEntry } from './index-definition.js';
import { type IndexKeys, indexKeysOf } from './index-keys.js';
import { KeyWriter, MAX_ID_BYTES, objectIdKey } from './key-encoding.js';

export const MAX_DOCUMENT_BYTES = 16 * 1024 * 1024;

/** Reads and writes documents together with their index entries. Writes must run inside a transaction of the queue. */
export class Documents {
  private readonly writer = new KeyWriter();
  private readonly idWriter = new KeyWriter();

  constructor(
    private readonly environment: Environment,
    private readonly catalog: Catalog,
    private readonly queue: CommitQueue,
  ) {}

  /** The encoded form of an `_id`: what documents are clustered on and index entries point with. */
  encodeId(id: unknown): Buffer {
    return this.idWriter.restart().component(id, false, MAX_ID_BYTES).take();
  }

  /** The stored document, in a buffer that the next read overwrites, as `idBytes` may be; undefined when there is none. */
  readShared(collectionId: number, idBytes: Buffer): Buffer | undefined {
    return this.environment.reader.get(this.writer.reset(DOCUMENT, collectionId).shared(idBytes));
  }

  /** The value under a key, in a buffer that the next read overwrites. */
  readKey(key: Buffer): Buffer | undefined {
    return this.environment.reader.get(this.writer.restart().raw(key));
  }

  /** A copy of the stored document, undefined when there is none. */
  read(collectionId: number, idBytes: Buffer): Buffer | undefined {
    const shared = this.readShared(collectionId, idBytes);
    return shared === undefined ? undefined : Buffer.from(shared.subarray(0, shared.length));
  }

  /**
   * Stores a new document whose `_id` comes first. Throws 11000, and 10334, 53 or 171 for documents that cannot be
   * stored; nothing is written then.
   */
  insert(collection: CollectionEntry, bytes: Buffer): void {
    checkSize(bytes);
    const doc = decodeDocument(bytes, 'engine', collection.indexedFields);
    checkId(doc['_id']);
    const idBytes = this.encodeId(doc['_id']);
    const isLong = this.idWriter.cut;
    const key = this.writer.reset(DOCUMENT, collection.id).raw(idBytes).take();
    if (this.environment.store.getBinaryFast(key) !== undefined) {
      throw duplicateKey(collection.ns, '_id_', { _id: 1 }, [doc['_id']]);
    }
    const entries = collection.indexes.map((index) => indexKeysOf(index, doc, idBytes, this.writer));
    collection.indexes.forEach((index, n) => {
      this.checkUnique(collection, index, entries[n]!.keys, doc, idBytes);
    });
    this.queue.put(key, bytes);
    for (const { keys } of entries) for (const entry of keys) this.queue.put(entry, idBytes);
    this.catalog.addSize(collection.id, 1, bytes.length);
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
    const indexes = touched === null ? collection.indexes : collection.indexes.filter((index) => reads(index, touched));
    if (indexes.length > 0) this.replaceEntries(collection, indexes, idBytes, before, after);
    this.queue.put(this.writer.reset(DOCUMENT, collection.id).raw(idBytes).take(), after);
    this.catalog.addSize(collection.id, 0, after.length - before.length);
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
    const added: Buffer[][] = [];
    const removed: { index: IndexEntry; keys: Buffer[] }[] = [];
    const entries = indexes.map((index) => {
      const old = indexKeysOf(index, oldDoc, idBytes, this.writer).keys;
      const next = indexKeysOf(index, newDoc, idBytes, this.writer);
      // While an index is being built, the unchanged entries may not be there yet; putting them again is harmless.
      const fresh = index.definition.state === 'building' ? next.keys : keysWithout(next.keys, old);
      added.push(fresh);
      removed.push({ index, keys: keysWithout(old, next.keys) });
      this.checkUnique(collection, index, fresh, newDoc, idBytes);
      return next;
    });
    for (const { index, keys } of removed) this.removeEntries(index, keys, idBytes);
    for (const keys of added) for (const key of keys) this.queue.put(key, idBytes);
    this.noteShapes(collection, indexes, entries);
  }

  delete(collection: CollectionEntry, idBytes: Buffer, before: Buffer): void {
    if (collection.indexes.length > 0) {
      const doc = decodeDocument(before, 'engine', collection.indexedFields);
      for (const index of collection.indexes) {
        this.removeEntries(index, indexKeysOf(index, doc, idBytes, this.writer).keys, idBytes);
      }
    }
    this.queue.remove(this.writer.reset(DOCUMENT, collection.id).raw(idBytes).take());
    this.catalog.addSize(collection.id, -1, -before.length);
  }

  /** Adds the entries of an existing document to an index that is being built. Throws 11000 as an insert would. */
  addToIndex(collection: CollectionEntry, index: IndexEntry, bytes: Buffer): void {
    const doc = decodeDocument(bytes, 'engine', collection.indexedFields);
    const idBytes = this.encodeId(doc['_id']);
    const entries = indexKeysOf(index, doc, idBytes, this.writer);
    this.checkUnique(collection, index, entries.keys, doc, idBytes);
    for (const key of entries.keys) this.queue.put(key, idBytes);
    this.noteShape(collection, index, entries);
  }

  private checkUnique(
    collection: CollectionEntry,
    index: IndexEntry,
    keys: readonly Buffer[],
    doc: Doc,
    idBytes: Buffer,
  ): void {
    if (!index.definition.unique) return;
    for (const key of keys) {
      const owner = this.environment.store.getBinaryFast(key);
      if (owner === undefined || idBytes.equals(owner.subarray(0, owner.length))) continue;
      const values = index.fields.map((field) => firstValue(doc, field.parts));
      throw duplicateKey(collection.ns, index.definition.name, index.definition.key, values);
    }
  }

  private removeEntries(index: IndexEntry, keys: readonly Buffer[], idBytes: Buffer): void {
    for (const key of keys) {
      if (index.definition.unique) {
        // While a unique index is being built the key may belong to another document.
        const owner = this.environment.store.getBinaryFast(key);
        if (owner === undefined || !idBytes.equals(owner.subarray(0, owner.length))) continue;
      }
      this.queue.remove(key);
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

/** An index that is being built is always kept up, since its entries may not be there yet. */
function reads(index: IndexEntry, touched: ReadonlySet<string>): boolean {
  if (index.reads === null || index.definition.state === 'building') return true;
  for (const field of touched) if (index.reads.has(field)) return true;
  return false;
}

const FEW_KEYS = 8;

/** The keys that are not among `others`, of which an array may have made a hundred thousand. */
function keysWithout(keys: readonly Buffer[], others: readonly Buffer[]): Buffer[] {
  if (others.length <= FEW_KEYS) return keys.filter((key) => !others.some((other) => other.equals(key)));
  const known = new Set(others.map((key) => key.latin1Slice()));
  return keys.filter((key) => !known.has(key.latin1Slice()));
}

function firstValue(doc: Doc, parts: readonly string[]): unknown {
  let value: unknown = doc;
  for (const part of parts) {
    if (Array.isArray(value)) value = value.find(isDocument);
    if (!isDocument(value)) return undefined;
    value = value[part];
  }
  return Array.isArray(value) ? value[0] : value;
}

function checkSize(bytes: Buffer): void {
  if (bytes.length > MAX_DOCUMENT_BYTES) {
    throw new EngineError(10334, `BSONObj size: ${bytes.length} is invalid. Size must be between 0 and 16793600(16MB)`);
  }
}

function checkId(id: unknown): void {
  if (Array.isArray(id)) throw new EngineError(53, "The '_id' value cannot be of type array");
  if (isDocument(id)) {
    for (const name of Object.keys(id)) {
      if (name.startsWith('$')) throw new EngineError(52, `_id fields may not contain '$'-prefixed fields: ${name}`);
    }
    return;
  }
  if (id !== null && typeof id === 'object' && (id as { _bsontype?: unknown })._bsontype === 'BSONRegExp') {
    throw new EngineError(53, "The '_id' value cannot be of type regex");
  }
  if (id === undefined) throw new EngineError(53, "The '_id' value cannot be missing");
}
