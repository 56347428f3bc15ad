import { type Doc, isDocument, type Row } from '../codec/document.js';
import { CODES, EngineError, typeMismatch } from '../errors.js';
import { equalValues } from '../query/values/compare.js';
import { showValue } from '../storage/catalog/duplicate-key.js';
import { buildIndexes } from '../storage/catalog/index-build.js';
import { reclaimDropped } from '../storage/file/reclaim.js';
import type { CollectionEntry, IndexDefinition } from '../storage/keys/index-definition.js';
import type { Storage } from '../storage/storage.js';
import { command, requireNamespace, requireWritable } from './command.js';
import type { RowSource } from './read/cursors.js';
import { newIndexes, presentIndex, readIndexSpec } from './index-specs.js';
import { anything, countOption, cursorOption, ignored, listOption, NO_CURSOR } from './options.js';
import { Pace } from './pace.js';

export const createIndexes = command({
  options: {
    indexes: listOption,
    commitQuorum: ignored,
    ignoreUnknownIndexOptions: ignored,
    maxTimeMS: countOption(undefined),
  },
  async run(call, { indexes: given = [], maxTimeMS }, target) {
    const ns = requireNamespace(call, target);
    requireWritable(ns);
    if (given.length === 0) {
      throw typeMismatch("BSON field 'createIndexes.indexes' must be a non-empty array");
    }
    const specs = given.map(readIndexSpec);
    const { storage } = call.core;
    storage.refresh();
    const before = storage.catalog.find(ns);
    // A client that makes sure of its indexes at every start should not have to wait for a write.
    if (before === null || newIndexes(before.definition.indexes, specs).length > 0) {
      await buildIndexes(storage, ns, (collection) => newIndexes(collection.definition.indexes, specs));
    }
    const after = await waitUntilBuilt(storage, ns, specs, new Pace(maxTimeMS, call.signal));
    const numIndexesBefore = (before?.indexes.length ?? 0) + 1;
    const numIndexesAfter = (after?.indexes.length ?? 0) + 1;
    return {
      numIndexesBefore,
      numIndexesAfter,
      createdCollectionAutomatically: before === null,
      ...(numIndexesBefore === numIndexesAfter ? { note: 'all indexes already exist' } : {}),
    };
  },
});

/** Another process may be building the same index: creating it is done only when it can be used. */
async function waitUntilBuilt(
  storage: Storage,
  ns: string,
  specs: readonly Omit<IndexDefinition, 'id'>[],
  pace: Pace,
): Promise<CollectionEntry | null> {
  const names = new Set(specs.map((spec) => spec.name));
  for (;;) {
    storage.refresh();
    const collection = storage.catalog.find(ns);
    const waits = collection?.definition.indexes.some(({ state, name }) => state === 'building' && names.has(name));
    if (waits !== true) return collection;
    pace.check();
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

export const listIndexes = command({
  options: { cursor: cursorOption, includeBuildUUIDs: ignored, includeIndexBuildInfo: ignored },
  async run(call, { cursor: { batchSize } = NO_CURSOR }, target) {
    const ns = requireNamespace(call, target);
    const { storage, cursors } = call.core;
    storage.refresh();
    const collection = storage.catalog.find(ns);
    if (collection === null) throw new EngineError(CODES.NamespaceNotFound, `ns does not exist: ${ns}`);
    const rows: Doc[] = [{ v: 2, key: { _id: 1 }, name: '_id_' }, ...collection.definition.indexes.map(presentIndex)];
    return { cursor: await cursors.begin(ns, listSource(rows), batchSize) };
  },
});

/** Rows that are all there already. */
export function listSource(rows: readonly Row[]): RowSource {
  let at = 0;
  return {
    get finished() {
      return at >= rows.length;
    },
    next(most) {
      const batch = rows.slice(at, at + most);
      at += batch.length;
      return batch;
    },
    close() {
      at = rows.length;
    },
  };
}

export const dropIndexes = command({
  options: { index: anything },
  async run(call, { index }, target) {
    const ns = requireNamespace(call, target);
    const { storage } = call.core;
    const nIndexesWas = await storage.queue.write(() => {
      const collection = storage.catalog.find(ns);
      if (collection === null) throw new EngineError(CODES.NamespaceNotFound, `ns not found ${ns}`);
      const dropped = matchIndexes(collection, index);
      let current = collection;
      for (const { id } of dropped) current = storage.catalog.changeIndex(current, id, null);
      return collection.indexes.length + 1;
    });
    void reclaimDropped(storage).catch(() => undefined);
    return { nIndexesWas };
  },
});

function matchIndexes(collection: CollectionEntry, wanted: unknown): IndexDefinition[] {
  const { indexes } = collection.definition;
  if (wanted === '*') return indexes;
  if (Array.isArray(wanted)) return (wanted as unknown[]).flatMap((name) => matchIndexes(collection, name));
  if (wanted === '_id_' || equalValues(wanted, { _id: 1 })) {
    throw new EngineError(CODES.InvalidOptions, 'cannot drop _id index');
  }
  const found = indexes.filter((index) => index.name === wanted || equalValues(index.key, wanted));
  if (found.length > 0) return found;
  if (typeof wanted === 'string') throw new EngineError(CODES.IndexNotFound, `index not found with name [${wanted}]`);
  if (!isDocument(wanted)) {
    throw typeMismatch("BSON field 'dropIndexes.index' must be a name, a list of names or a key");
  }
  throw new EngineError(CODES.IndexNotFound, `can't find index with key: ${showValue(wanted)}`);
}
