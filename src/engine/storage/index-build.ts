import { type Storage } from './storage.js';
import { type CollectionEntry, type IndexDefinition, type IndexEntry } from './index-definition.js';
import { DOCUMENT } from './environment.js';
import { ownerKey } from './catalog.js';
import { EngineError } from '../errors.js';

const CHUNK = 64;

/** How far the building of an index has come. */
export interface BuildProgress {
  ns: string;
  index: string;
  documents: number;
  total: number;
}

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
  report: (progress: BuildProgress) => void = () => undefined,
): Promise<void> {
  const build = await storage.queue.write(() => beginBuild(storage, ns, definitions));
  if (build !== null) await finishBuild(storage, build, report);
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
  const empty = catalog.size(collection.id).documents === 0;
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
  };
}

async function finishBuild(storage: Storage, build: Build, report: (progress: BuildProgress) => void): Promise<void> {
  const { catalog, queue } = storage;
  let documents = 0;
  for (;;) {
    let step: { last: Buffer | null; read: number; name: string; total: number };
    try {
      step = await queue.write(() => buildSome(storage, build));
    } catch (error) {
      await queue.write(() => {
        abandon(storage, build);
      });
      throw error;
    }
    documents += step.read;
    report({ ns: build.ns, index: step.name, documents, total: step.total });
    if (step.last === null) break;
    build.last = step.last;
  }
  // The last batch has made the indexes ready in the same transaction that found no further document.
  storage.refresh();
  if (catalog.find(build.ns)?.id !== build.collectionId) throw new EngineError(175, `collection dropped: ${build.ns}`);
}

function buildSome(storage: Storage, build: Build): { last: Buffer | null; read: number; name: string; total: number } {
  const { collection, indexes } = requireBuilding(storage, build);
  const prefix = ownerKey(DOCUMENT, collection.id);
  const end = Buffer.concat([prefix, Buffer.from([0xff])]);
  const name = indexes.map((index) => index.definition.name).join(', ');
  const total = storage.catalog.size(collection.id).documents;
  let { last } = build;
  let read = 0;
  while (read === 0 || !storage.queue.expired()) {
    const entries = [
      ...storage.environment.store.getRange({
        start: last ?? prefix,
        end,
        limit: CHUNK,
        exclusiveStart: last !== null,
      }),
    ];
    for (const { key, value } of entries) {
      for (const index of indexes) storage.documents.addToIndex(collection, index, value);
      last = key;
      read++;
    }
    if (entries.length < CHUNK) {
      for (const index of indexes) markReady(storage, build.ns, index);
      return { last: null, read, name, total };
    }
  }
  return { last, read, name, total };
}

function markReady(storage: Storage, ns: string, index: IndexEntry): void {
  const collection = storage.catalog.find(ns)!;
  const indexes = collection.definition.indexes.map((definition): IndexDefinition => {
    if (definition.id !== index.definition.id) return definition;
    const { builder: _builder, ...rest } = definition;
    return { ...rest, state: 'ready' };
  });
  storage.catalog.save({ ...collection.definition, indexes });
}

function requireBuilding(storage: Storage, build: Build): { collection: CollectionEntry; indexes: IndexEntry[] } {
  const collection = storage.catalog.find(build.ns);
  if (collection?.id !== build.collectionId) throw new EngineError(175, `collection dropped: ${build.ns}`);
  const indexes = collection.indexes.filter((index) => build.indexIds.includes(index.definition.id));
  if (indexes.length !== build.indexIds.length) throw new EngineError(175, 'index dropped while it was being built');
  return { collection, indexes };
}

function abandon(storage: Storage, build: Build): void {
  for (const id of build.indexIds) {
    const collection = storage.catalog.find(build.ns);
    if (collection?.id !== build.collectionId) return;
    if (collection.indexes.some((index) => index.definition.id === id))
      storage.catalog.changeIndex(collection, id, null);
  }
}

/** Goes on with builds whose process is gone; to be called when the engine is opened and now and then. */
export async function resumeBuilds(storage: Storage): Promise<void> {
  storage.refresh();
  for (const collection of storage.catalog.list('')) {
    const orphans = collection.definition.indexes.filter(
      (index) => index.state === 'building' && !isAlive(index.builder),
    );
    if (orphans.length === 0) continue;
    const ids = orphans.map((index) => index.id);
    const build = await storage.queue.write((): Build | null => {
      const current = storage.catalog.find(collection.ns);
      if (current?.id !== collection.id) return null;
      const indexes = current.definition.indexes.map((index) =>
        ids.includes(index.id) && index.state === 'building' ? { ...index, builder: process.pid } : index,
      );
      storage.catalog.save({ ...current.definition, indexes });
      const indexIds = indexes
        .filter((index) => ids.includes(index.id) && index.state === 'building')
        .map(({ id }) => id);
      return { ns: collection.ns, collectionId: collection.id, indexIds, last: null };
    });
    if (build !== null && build.indexIds.length > 0) await finishBuild(storage, build, () => undefined);
  }
}

function isAlive(pid: number | undefined): boolean {
  if (pid === undefined) return false;
  if (pid === process.pid) return true;
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM';
  }
}
