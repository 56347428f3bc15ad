import { Binary } from '../../codec/bson.js';
import { decodeDocument } from '../../codec/decode.js';
import { CODES, EngineError } from '../../errors.js';
import { randomUUID } from 'node:crypto';
import { decodeDefinition, encodeRecord } from '../catalog/catalog-records.js';
import { newLog, ownerKey } from '../catalog/catalog.js';
import { CountChanges, countedValue, encodeCounts, noCounts } from '../catalog/kept-counts.js';
import { presentIdKey } from '../encoding/key-kinds.js';
import { CHANGE_SPACE, COUNTER_SPACE, DOCUMENT_SPACE, DROPPED_SPACE, INDEX_SPACE } from '../format/key-spaces.js';
import { bsonLength, contentOf, entrySum, storedSum } from '../format/stored-form.js';
import type { CollectionDefinition, CollectionEntry, IndexEntry, KeptCounts } from '../keys/index-definition.js';
import { indexKeysOf } from '../keys/index-keys.js';
import { KeyWriter } from '../encoding/key-encoding.js';
import { seqOf } from '../log/change-entry.js';
import type { Storage } from '../storage.js';

/** Batch size, in entries. */
const CHUNK = 512;
/** Ids that are named of a collection; how many there are besides is counted. */
const MOST_IDS = 100;

/** What became of a collection that was not whole. */
export interface RepairedCollection {
  readonly ns: string;
  /** Documents that are in the new file. */
  readonly documents: number;
  /** How many are not; null when the damaged file does not say how many there were. */
  lost: number | null;
  /** The ids of lost documents as far as they are known, in words; a hundred at most. */
  readonly ids: string[];
  /**
   * Documents that were found and left out, since nothing shows that they were still stored: they may have been
   * deleted, or changed, since.
   */
  uncertain: number;
  /** The ids of such documents, in words; a hundred at most. */
  readonly uncertainIds: string[];
  /** Indexes that were built again. */
  readonly rebuilt: string[];
  /** Its log of changes begins again: who follows it has to read everything again. */
  readonly logBeginsAnew: boolean;
  /** What else is to be known. */
  readonly notes: string[];
}

/** What a damaged file said besides its documents and entries. */
export interface Salvage {
  /** By the id of the collection. */
  readonly counts: ReadonlyMap<number, KeptCounts>;
  /** Namespaces whose definition is damaged. */
  readonly undefined: readonly string[];
  /** Encoded ids of documents that were met and are damaged, as latin1; by the id of the collection. */
  readonly damaged: ReadonlyMap<number, ReadonlySet<string>>;
  /** Those of documents that were found in pages that may be of an earlier time; by the id of the collection. */
  readonly unsure: ReadonlyMap<number, ReadonlySet<string>>;
}

/** Called between steps, to let others have their turn; throws when the work is to end. */
export type BetweenSteps = () => Promise<void>;

/**
 * Makes a store of the entries that were copied out of a damaged file: indexes have the entries of the documents that
 * are there, counts say what is there, logs of changes are whole or begin again. Reports each collection that is not
 * what it was.
 */
export async function settleCopy(
  storage: Storage,
  salvage: Salvage,
  pause: BetweenSteps,
): Promise<RepairedCollection[]> {
  const notes = await defineMissing(storage, salvage);
  storage.refresh();
  await removeOrphans(storage, pause);
  const repaired: RepairedCollection[] = [];
  for (const { ns } of storage.catalog.list('')) {
    const found = await settleCollection(storage, ns, salvage, notes.get(ns) ?? [], pause);
    if (found !== null) repaired.push(found);
  }
  return repaired;
}

/** Gives collections whose definition is lost a new one; what is to be said of them, by namespace. */
async function defineMissing(storage: Storage, salvage: Salvage): Promise<Map<string, string[]>> {
  const notes = new Map<string, string[]>();
  storage.refresh();
  const known = storage.catalog.list('');
  const owners = new Set(known.flatMap(({ id, log, indexes }) => [id, log?.id ?? 0, ...indexes.map(idOf)]));
  const dropped = new Set(storage.catalog.discarded().map((prefix) => prefix.toString('latin1')));
  const orphans = listOwners(storage, DOCUMENT_SPACE).filter(
    (id) => !owners.has(id) && !dropped.has(ownerKey(DOCUMENT_SPACE, id).toString('latin1')),
  );
  const used = [DOCUMENT_SPACE, INDEX_SPACE, CHANGE_SPACE].flatMap((space) => listOwners(storage, space));
  const names = salvage.undefined.filter((ns) => !known.some((collection) => collection.ns === ns));
  const countBy = known.map(({ definition }) => definition.countBy).find((field) => field !== undefined);
  await storage.queue.write(() => {
    storage.catalog.skipIds(Math.max(0, ...owners, ...used, ...salvage.counts.keys()) + 1);
    const define = (ns: string, id: number, note: string): void => {
      const uuid = new Binary(Buffer.from(randomUUID().replaceAll('-', ''), 'hex'), Binary.SUBTYPE_UUID);
      const definition: CollectionDefinition = { id, ns, uuid, options: {}, indexes: [] };
      storage.catalog.save(countBy === undefined ? definition : { ...definition, countBy });
      notes.set(ns, [note]);
    };
    // Of one name and one set of documents it is clear that they belong together.
    if (names.length === 1 && orphans.length === 1) {
      define(names[0]!, orphans[0]!, `${LOST_DEFINITION} ${MAKE_INDEXES}`);
      return;
    }
    for (const id of orphans) {
      define(`recovered.collection_${id}`, id, 'The name of its collection is lost: its documents were put here.');
    }
    for (const ns of names) {
      define(ns, storage.catalog.takeId(), `${LOST_DEFINITION} Which documents were its own is not known.`);
    }
  });
  return notes;
}

const LOST_DEFINITION = 'Its definition is lost, with its indexes and its log of changes.';
const MAKE_INDEXES = '"bsvc doctor --fix" makes its indexes again.';

function idOf(index: IndexEntry): number {
  return index.definition.id;
}

/** The ids of all that has entries in a space. */
function listOwners({ environment }: Storage, space: number): number[] {
  const owners: number[] = [];
  for (let id = 0; ;) {
    const range = { start: ownerKey(space, id), end: Buffer.from([space + 1]), limit: 1 };
    const [key] = [...environment.store.getKeys(range)];
    if (key === undefined) return owners;
    owners.push(key.readUInt32BE(1));
    id = owners.at(-1)! + 1;
  }
}

/** Removes entries of indexes and logs that belong to no collection. */
async function removeOrphans(storage: Storage, pause: BetweenSteps): Promise<void> {
  const all = storage.catalog.list('');
  const indexes = new Set(all.flatMap((collection) => collection.indexes.map(idOf)));
  const logs = new Set(all.map(({ log }) => log?.id));
  for (const id of listOwners(storage, INDEX_SPACE)) {
    if (!indexes.has(id)) await clear(storage, ownerKey(INDEX_SPACE, id), pause);
  }
  for (const id of listOwners(storage, CHANGE_SPACE)) {
    if (!logs.has(id)) await clear(storage, ownerKey(CHANGE_SPACE, id), pause);
  }
  for (const prefix of storage.catalog.discarded()) await clear(storage, prefix, pause);
  await clear(storage, Buffer.from([DROPPED_SPACE]), pause);
}

/** Removes all keys that begin with the prefix. */
async function clear(storage: Storage, prefix: Buffer, pause: BetweenSteps): Promise<void> {
  const end = Buffer.concat([prefix, Buffer.from([0xff])]);
  for (;;) {
    await pause();
    const left = await storage.queue.write(() => {
      const keys = [...storage.environment.store.getKeys({ start: prefix, end, limit: CHUNK })];
      for (const key of keys) storage.queue.remove(key);
      return keys.length === CHUNK;
    });
    if (!left) return;
  }
}

/** Null for a collection that is as it was. */
async function settleCollection(
  storage: Storage,
  ns: string,
  salvage: Salvage,
  notes: string[],
  pause: BetweenSteps,
  leftOut: ReadonlySet<string> = new Set(),
): Promise<RepairedCollection | null> {
  const collection = storage.catalog.find(ns)!;
  const kept = salvage.counts.get(collection.id) ?? null;
  const expected = new Map(collection.indexes.map((index) => [idOf(index), { entries: 0, digest: 0 }]));
  const found = await sumDocuments(storage, collection, expected, pause);
  // What was not counted is an empty collection.
  const isWhole =
    (kept === null ? found.documents === 0 && notes.length === 0 : isSame(kept, found)) &&
    !salvage.damaged.has(collection.id);
  const counts: KeptCounts = { ...found, writes: Math.max(kept?.writes ?? 0, found.documents), indexes: new Map() };
  const rebuilt: IndexEntry[] = [];
  const reliable: IndexEntry[] = [];
  const ids = new Set(salvage.damaged.get(collection.id));
  for (const index of collection.indexes) {
    const id = idOf(index);
    const there = await sumEntries(storage, collection, index, isWhole ? null : ids, pause);
    const wanted = expected.get(id)!;
    const isReady = index.definition.state === 'ready';
    const counted = kept?.indexes.get(id);
    if (isReady && counted?.entries === there.entries && counted.digest === there.digest) reliable.push(index);
    // One that is being built is built again by who opens the file.
    if (isReady && there.entries === wanted.entries && there.digest === wanted.digest) counts.indexes.set(id, there);
    else rebuilt.push(index);
  }
  if (!isWhole) {
    const doubted = await findDoubted(storage, collection, reliable, salvage.unsure.get(collection.id), pause);
    if (doubted.size > 0) {
      await removeDocuments(storage, collection, doubted, pause);
      return settleCollection(storage, ns, salvage, notes, pause, new Set([...leftOut, ...doubted]));
    }
  }
  const log = collection.log === null ? null : await readLogEnd(storage, collection, kept, pause);
  counts.log = log !== null && isWhole ? log : null;
  let logBeginsAnew = false;
  if (collection.log !== null && counts.log === null) {
    logBeginsAnew = true;
    await clear(storage, ownerKey(CHANGE_SPACE, collection.log.id), pause);
    counts.log = newLog(counts.writes);
  }
  await storage.queue.write(() => {
    const key = ownerKey(COUNTER_SPACE, collection.id);
    storage.queue.put(key, encodeRecord(key, encodeCounts(counts)));
  });
  for (const index of rebuilt) await clear(storage, ownerKey(INDEX_SPACE, idOf(index)), pause);
  const ready = rebuilt.filter(({ definition }) => definition.state === 'ready');
  const refused = ready.length > 0 ? await rebuild(storage, ns, ready.map(idOf), pause) : [];
  if (refused.length > 0) {
    for (const { key, index } of refused) {
      const name = presentIdKey(key.subarray(5));
      notes.push(`The document ${name} was not copied: another one has its value in the unique index ${index}.`);
      await storage.queue.write(() => {
        storage.queue.remove(key);
      });
    }
    return settleCollection(storage, ns, salvage, notes, pause, leftOut);
  }
  if (isWhole && ready.length === 0 && !logBeginsAnew && notes.length === 0 && leftOut.size === 0) return null;
  for (const id of leftOut) ids.delete(id);
  return {
    ns,
    documents: found.documents,
    lost: kept === null ? null : Math.max(kept.documents - found.documents, 0),
    ids: presentIds(ids),
    uncertain: leftOut.size,
    uncertainIds: presentIds(leftOut),
    rebuilt: ready.map(({ definition }) => definition.name),
    logBeginsAnew,
    notes,
  };
}

function presentIds(ids: ReadonlySet<string>): string[] {
  return [...ids].slice(0, MOST_IDS).map((id) => presentIdKey(Buffer.from(id, 'latin1')));
}

/**
 * The documents of a hurt collection for which nothing vouches, as encoded ids. A reliable index, whose entries are
 * those that were counted, names exactly the documents that were stored: what it does not name, or names by other
 * values, was deleted or changed. Where that doubts no document and the collection is hurt all the same, those from
 * pages that may be of an earlier time are doubted.
 */
async function findDoubted(
  storage: Storage,
  collection: CollectionEntry,
  reliable: readonly IndexEntry[],
  unsure: ReadonlySet<string> | undefined,
  pause: BetweenSteps,
): Promise<Set<string>> {
  const doubted = new Set<string>();
  const unproven = new Set<string>();
  const writer = new KeyWriter();
  await visit(storage, ownerKey(DOCUMENT_SPACE, collection.id), pause, (key, value) => {
    const idBytes = key.subarray(5);
    const id = idBytes.toString('latin1');
    const doc = decodeDocument(value.subarray(0, bsonLength(value)));
    const isNamed = reliable.every((index) =>
      indexKeysOf(index, doc, idBytes, writer).keys.every((indexKey) => {
        const entry = storage.environment.store.getBinary(indexKey);
        return entry !== undefined && contentOf(entry).equals(idBytes);
      }),
    );
    if (!isNamed) doubted.add(id);
    else if (unsure?.has(id) === true) unproven.add(id);
  });
  return doubted.size > 0 ? doubted : unproven;
}

async function removeDocuments(
  { queue }: Storage,
  collection: CollectionEntry,
  ids: ReadonlySet<string>,
  pause: BetweenSteps,
): Promise<void> {
  const keys = [...ids].map((id) =>
    Buffer.concat([ownerKey(DOCUMENT_SPACE, collection.id), Buffer.from(id, 'latin1')]),
  );
  for (let at = 0; at < keys.length; at += CHUNK) {
    await pause();
    await queue.write(() => {
      for (const key of keys.slice(at, at + CHUNK)) queue.remove(key);
    });
  }
}

function isSame(kept: KeptCounts, found: KeptCounts): boolean {
  return (
    kept.documents === found.documents &&
    kept.bytes === found.bytes &&
    kept.digest === found.digest &&
    kept.yes === found.yes &&
    kept.no === found.no &&
    kept.lists === found.lists
  );
}

async function sumDocuments(
  storage: Storage,
  collection: CollectionEntry,
  expected: Map<number, { entries: number; digest: number }>,
  pause: BetweenSteps,
): Promise<KeptCounts> {
  const changes = new CountChanges();
  const writer = new KeyWriter();
  const indexes = collection.indexes.map((index) => [index, expected.get(idOf(index))!] as const);
  await visit(storage, ownerKey(DOCUMENT_SPACE, collection.id), pause, (key, value) => {
    const length = bsonLength(value);
    const doc = decodeDocument(value.subarray(0, length));
    changes.sums.documents++;
    changes.sums.bytes += length;
    changes.addDigest(1, storedSum(value), countedValue(collection, doc));
    const idBytes = key.subarray(5);
    for (const [index, sums] of indexes) {
      for (const indexKey of indexKeysOf(index, doc, idBytes, writer).keys) {
        sums.entries++;
        sums.digest = (sums.digest + entrySum(indexKey, idBytes)) | 0;
      }
    }
  });
  return changes.applyTo(noCounts());
}

/** Counts the entries of an index; to `lost` come the documents that they name and that are not there. */
async function sumEntries(
  storage: Storage,
  collection: CollectionEntry,
  index: IndexEntry,
  lost: Set<string> | null,
  pause: BetweenSteps,
): Promise<{ entries: number; digest: number }> {
  const sums = { entries: 0, digest: 0 };
  const prefix = ownerKey(DOCUMENT_SPACE, collection.id);
  await visit(storage, ownerKey(INDEX_SPACE, idOf(index)), pause, (key, value) => {
    const idBytes = contentOf(value);
    sums.entries++;
    sums.digest = (sums.digest + entrySum(key, idBytes)) | 0;
    if (lost === null || storage.environment.store.doesExist(Buffer.concat([prefix, idBytes]))) return;
    lost.add(idBytes.toString('latin1'));
  });
  return sums;
}

/** Where the log ends; null when it is not whole. */
async function readLogEnd(
  storage: Storage,
  collection: CollectionEntry,
  kept: KeptCounts | null,
  pause: BetweenSteps,
): Promise<KeptCounts['log']> {
  const log = kept === null ? null : kept.log;
  if (log === null) return null;
  let next: number | null = null;
  let bytes = 0;
  let hasGap = false;
  await visit(storage, ownerKey(CHANGE_SPACE, collection.log!.id), pause, (key, value) => {
    const seq = seqOf(key);
    hasGap ||= next !== null && seq !== next;
    next = seq + 1;
    bytes += value.length;
  });
  return !hasGap && bytes === log.bytes && (next ?? log.seq + 1) === log.seq + 1 ? log : null;
}

/** Calls `look` with each entry whose key begins with the prefix, in the order of the keys. */
async function visit(
  storage: Storage,
  prefix: Buffer,
  pause: BetweenSteps,
  look: (key: Buffer, value: Buffer) => void,
): Promise<void> {
  for (let chunk: StoredEntry[] = [], isOver = false; !isOver;) {
    await pause();
    chunk = readChunk(storage, prefix, chunk.at(-1)?.key);
    for (const { key, value } of chunk) look(key, value);
    isOver = chunk.length < CHUNK;
  }
}

interface StoredEntry {
  readonly key: Buffer;
  readonly value: Buffer;
}

/** The next entries behind the key `last` whose keys begin with the prefix. */
function readChunk({ environment }: Storage, prefix: Buffer, last?: Buffer): StoredEntry[] {
  const end = Buffer.concat([prefix, Buffer.from([0xff])]);
  const range = { start: last ?? prefix, end, exclusiveStart: last !== undefined, limit: CHUNK };
  return [...environment.store.getRange(range)];
}

/** Builds indexes; returns which documents a unique one refuses, which are in none of them then. */
async function rebuild(
  storage: Storage,
  ns: string,
  ids: readonly number[],
  pause: BetweenSteps,
): Promise<RefusedDocument[]> {
  const refused: RefusedDocument[] = [];
  const { queue, catalog, documents } = storage;
  const prefix = ownerKey(DOCUMENT_SPACE, catalog.find(ns)!.id);
  for (let chunk: StoredEntry[] = [], isOver = false; !isOver;) {
    await pause();
    chunk = readChunk(storage, prefix, chunk.at(-1)?.key);
    isOver = chunk.length < CHUNK;
    for (let at = 0; at < chunk.length;) {
      at = await queue.write(() => {
        let next = at;
        do {
          const { key, value } = chunk[next++]!;
          for (const id of ids) {
            const collection = catalog.find(ns)!;
            const index = collection.indexes.find(({ definition }) => definition.id === id)!;
            try {
              documents.addToIndex(collection, index, value.subarray(0, bsonLength(value)));
            } catch (error) {
              if (!(error instanceof EngineError) || error.code !== CODES.DuplicateKey) throw error;
              refused.push({ key, index: index.definition.name });
              break;
            }
          }
        } while (next < chunk.length && !queue.expired());
        return next;
      });
    }
  }
  return refused;
}

interface RefusedDocument {
  readonly key: Buffer;
  readonly index: string;
}

/** The definition in a record of the catalog; null when it is damaged. */
export function readDefinition(key: Buffer, value: Buffer): CollectionDefinition | null {
  try {
    return decodeDefinition(key, value);
  } catch {
    return null;
  }
}
