import type { Storage } from '../storage.js';
import type { CollectionEntry, IndexDefinition, IndexEntry } from '../keys/index-definition.js';
import { listProcesses } from '../file/environment.js';
import { DOCUMENT_SPACE } from '../format/key-spaces.js';
import { ownerKey } from './catalog.js';
import { checksum } from '../format/checksum.js';
import { CODES, EngineError } from '../../errors.js';

/** Batch size, in documents and in bytes. */
const CHUNK = 64;
const CHUNK_BYTES = 1024 * 1024;

/** Where a build stands between two transactions. */
interface Build {
  ns: string;
  collectionId: number;
  indexIds: readonly number[];
  last: Buffer | null;
}

/**
 * Adds indexes to a collection (made if it does not exist) and fills them in batches. While that goes on they are
 * `building`: all processes' writers maintain them, planners ignore them. A failure (11000, 171) takes them away again.
 */
export async function buildIndexes(
  storage: Storage,
  ns: string,
  definitions: (collection: CollectionEntry) => Omit<IndexDefinition, 'id'>[],
): Promise<void> {
  const build = await storage.queue.write(() => beginBuild(storage, ns, definitions));
  if (build !== null) await finishBuild(storage, build);
}

function beginBuild(
  storage: Storage,
  ns: string,
  definitions: (collection: CollectionEntry) => Omit<IndexDefinition, 'id'>[],
): Build | null {
  const { catalog } = storage;
  // All refusals must come before the first put.
  const existing = catalog.find(ns);
  const wanted = definitions(existing ?? emptyCollection(ns));
  const collection = existing ?? catalog.create(ns);
  if (wanted.length === 0) return null;
  const empty = catalog.counts(collection.id).documents === 0;
  const added = wanted.map((definition): IndexDefinition => ({
    ...definition,
    id: catalog.takeId(),
    state: empty ? 'ready' : 'building',
    ...(empty ? {} : { builder: process.pid }),
  }));
  catalog.save({ ...collection.definition, indexes: [...collection.definition.indexes, ...added] });
  if (empty) return null;
  return { ns, collectionId: collection.id, indexIds: added.map((index) => index.id), last: null };
}

function emptyCollection(ns: string): CollectionEntry {
  return {
    definition: { id: 0, ns, uuid: null, options: {}, indexes: [] },
    id: 0,
    ns,
    indexes: [],
    indexedFields: new Set(),
    conditionFields: new Set(),
    countField: null,
    log: null,
  };
}

async function finishBuild(storage: Storage, build: Build): Promise<void> {
  const { catalog, queue, building } = storage;
  for (const id of build.indexIds) building.add(id);
  try {
    do {
      build.last = await queue.write(() => buildSome(storage, build));
    } while (build.last !== null);
  } catch (error) {
    // Where not even that can be written, for want of space, housekeeping goes on with the build when there is some.
    await queue.write(() => abandon(storage, build)).catch(() => undefined);
    throw error;
  } finally {
    for (const id of build.indexIds) building.delete(id);
  }
  // The last batch has made the indexes ready in the same transaction that found no further document.
  storage.refresh();
  if (catalog.find(build.ns)?.id !== build.collectionId) {
    throw new EngineError(CODES.QueryPlanKilled, `collection dropped: ${build.ns}`);
  }
}

/** The key of the last document whose entries were added; null when that was the last of all. */
function buildSome(storage: Storage, build: Build): Buffer | null {
  const { catalog, documents, queue } = storage;
  const { collection, indexes } = requireBuilding(storage, build);
  let { last } = build;
  do {
    const { entries, more } = readChunk(storage, collection, last);
    for (const { key, value } of entries) {
      for (const index of indexes) documents.addToIndex(collection, index, value);
      last = key;
    }
    if (!more) {
      // Adding entries may have changed the definition.
      let current = catalog.find(build.ns)!;
      for (const id of build.indexIds) current = catalog.changeIndex(current, id, { state: 'ready' });
      return null;
    }
  } while (!queue.expired());
  return last;
}

interface StoredEntry {
  key: Buffer;
  value: Buffer;
}

/** Documents behind the key `last`, in copies, since nothing may be written while a range is read. */
function readChunk(
  storage: Storage,
  collection: CollectionEntry,
  last: Buffer | null,
): { entries: StoredEntry[]; more: boolean } {
  const prefix = ownerKey(DOCUMENT_SPACE, collection.id);
  const entries: StoredEntry[] = [];
  let size = 0;
  const range = storage.environment.store.getRange({
    start: last ?? prefix,
    end: Buffer.concat([prefix, Buffer.from([0xff])]),
    exclusiveStart: last !== null,
  });
  for (const { key, value } of range) {
    const bytes = storage.documents.open(collection, checksum(0, key, key.length), value, () => key.subarray(5));
    entries.push({ key, value: bytes });
    size += value.length;
    if (entries.length === CHUNK || size >= CHUNK_BYTES) return { entries, more: true };
  }
  return { entries, more: false };
}

function requireBuilding(storage: Storage, build: Build): { collection: CollectionEntry; indexes: IndexEntry[] } {
  const collection = storage.catalog.find(build.ns);
  if (collection?.id !== build.collectionId) {
    throw new EngineError(CODES.QueryPlanKilled, `collection dropped: ${build.ns}`);
  }
  const indexes = collection.indexes.filter((index) => build.indexIds.includes(index.definition.id));
  if (indexes.length !== build.indexIds.length) {
    throw new EngineError(CODES.QueryPlanKilled, 'index dropped while it was being built');
  }
  return { collection, indexes };
}

function abandon(storage: Storage, build: Build): void {
  let collection = storage.catalog.find(build.ns);
  if (collection?.id !== build.collectionId) return;
  for (const { definition } of collection.indexes) {
    if (build.indexIds.includes(definition.id)) {
      collection = storage.catalog.changeIndex(collection, definition.id, null);
    }
  }
}

/** Goes on with builds that nobody works on any more; to be called when the engine is opened and now and then. */
export async function resumeBuilds(storage: Storage): Promise<void> {
  storage.refresh();
  const processes = listProcesses(storage.environment);
  // A process that was killed may have a successor with its id, most of all in a container.
  const isOrphan = ({ id, state, builder }: IndexDefinition): boolean =>
    state === 'building' &&
    (builder === undefined || (builder === process.pid ? !storage.building.has(id) : !processes.includes(builder)));
  for (const { ns, definition } of storage.catalog.list('')) {
    if (!definition.indexes.some(isOrphan)) continue;
    const build = await storage.queue.write(() => takeOver(storage, ns, isOrphan));
    if (build !== null) await finishBuild(storage, build);
  }
}

function takeOver(storage: Storage, ns: string, isOrphan: (index: IndexDefinition) => boolean): Build | null {
  const collection = storage.catalog.find(ns);
  const orphans = collection?.definition.indexes.filter(isOrphan) ?? [];
  if (collection === null || orphans.length === 0) return null;
  let current = collection;
  for (const { id } of orphans) current = storage.catalog.changeIndex(current, id, { builder: process.pid });
  return { ns, collectionId: collection.id, indexIds: orphans.map(({ id }) => id), last: null };
}
