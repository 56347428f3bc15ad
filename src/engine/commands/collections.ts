import type { Doc } from '../codec/document.js';
import { badValue, CODES, EngineError } from '../errors.js';
import { compileFilter } from '../query/match/match.js';
import type { CollectionEntry } from '../storage/keys/index-definition.js';
import { reclaimDropped } from '../storage/file/reclaim.js';
import { type Call, command, requireDatabaseName, requireNamespace, requireWritable } from './command.js';
import { listSource } from './indexes.js';
import {
  collationOption,
  cursorOption,
  documentOption,
  flagOption,
  ignored,
  NO_CURSOR,
  refusedFlag,
  textOption,
} from './options.js';

export const create = command({
  options: {
    collation: collationOption,
    idIndex: ignored,
    autoIndexId: ignored,
    capped: refusedFlag('capped collections are not supported by this engine'),
    validator: documentOption,
    validationLevel: ignored,
    validationAction: ignored,
  },
  async run(call, { validator, collation }, target) {
    const ns = requireNamespace(call, target);
    requireWritable(ns);
    if (Object.keys(validator).length > 0) throw badValue('validators are not supported by this engine');
    if (collation !== null) throw badValue('a default collation of a collection is not supported by this engine');
    const { storage } = call.core;
    await storage.queue.write(() => {
      if (storage.catalog.find(ns) !== null) {
        throw new EngineError(CODES.NamespaceExists, `Collection ${ns} already exists.`);
      }
      storage.catalog.create(ns);
    });
    return {};
  },
});

export const drop = command({
  options: {},
  async run(call, _options, target) {
    const ns = requireNamespace(call, target);
    const { storage } = call.core;
    const dropped = await storage.queue.write((): CollectionEntry | null => {
      const collection = storage.catalog.find(ns);
      if (collection !== null) storage.catalog.drop(collection);
      return collection;
    });
    if (dropped === null) return { ns };
    void reclaimDropped(storage).catch(() => undefined);
    return { nIndexesWas: dropped.indexes.length + 1, ns };
  },
});

export const dropDatabase = command({
  options: {},
  async run(call) {
    const { storage } = call.core;
    const found = await storage.queue.write(() => {
      const collections = storage.catalog.list(`${call.db}.`);
      for (const collection of collections) storage.catalog.drop(collection);
      return collections.length;
    });
    if (found > 0) void reclaimDropped(storage).catch(() => undefined);
    return { dropped: call.db };
  },
});

function requireFullNamespace(call: Call, ns: string): void {
  const dot = Math.max(0, ns.indexOf('.'));
  const db = ns.slice(0, dot);
  requireDatabaseName(db);
  requireWritable(requireNamespace({ ...call, db }, ns.slice(dot + 1)));
}

export const renameCollectionCommand = command({
  options: { to: textOption, dropTarget: flagOption(false) },
  async run(call, { to, dropTarget }, target) {
    const from = textOption.read(target, 'renameCollection', 'renameCollection');
    for (const ns of [from, to]) requireFullNamespace(call, ns);
    if (from === to) throw new EngineError(CODES.IllegalOperation, "Can't rename a collection to itself");
    const { storage } = call.core;
    await storage.queue.write(() => {
      const source = storage.catalog.find(from);
      if (source === null) throw new EngineError(CODES.NamespaceNotFound, `Source collection ${from} does not exist`);
      const existing = storage.catalog.find(to);
      if (existing !== null && !dropTarget) {
        throw new EngineError(CODES.NamespaceExists, 'target namespace exists');
      }
      if (existing !== null) storage.catalog.drop(existing);
      storage.catalog.rename(source, to);
    });
    void reclaimDropped(storage).catch(() => undefined);
    return {};
  },
});

export const listCollectionsCommand = command({
  options: {
    filter: documentOption,
    nameOnly: flagOption(false),
    authorizedCollections: ignored,
    cursor: cursorOption,
  },
  async run(call, { filter: wanted, nameOnly, cursor: { batchSize } = NO_CURSOR }) {
    const { storage, cursors } = call.core;
    const filter = compileFilter(wanted);
    storage.refresh();
    const rows = storage.catalog
      .list(`${call.db}.`)
      .map((collection) => presentCollection(collection))
      .filter((row) => filter.matches(row))
      .map((row): Doc => (nameOnly ? { name: row['name'], type: row['type'] } : row));
    return { cursor: await cursors.begin(`${call.db}.$cmd.listCollections`, listSource(rows), batchSize) };
  },
});

function presentCollection({ definition }: CollectionEntry): Doc {
  return {
    name: definition.ns.slice(definition.ns.indexOf('.') + 1),
    type: 'collection',
    options: definition.options,
    info: { readOnly: false, uuid: definition.uuid },
    idIndex: { v: 2, key: { _id: 1 }, name: '_id_' },
  };
}

export const listDatabases = command({
  options: { filter: documentOption, nameOnly: flagOption(false), authorizedDatabases: ignored },
  run(call, { filter: wanted, nameOnly }) {
    const { storage } = call.core;
    const filter = compileFilter(wanted);
    storage.refresh();
    const sizes = new Map<string, number>();
    for (const collection of storage.catalog.list('')) {
      const name = collection.ns.slice(0, collection.ns.indexOf('.'));
      sizes.set(name, (sizes.get(name) ?? 0) + storage.catalog.counts(collection.id).bytes);
    }
    const databases = [...sizes]
      .map(([name, bytes]): Doc => ({ name, sizeOnDisk: bytes, empty: false }))
      .filter((database) => filter.matches(database));
    if (nameOnly) return { databases: databases.map(({ name }): Doc => ({ name })) };
    const totalSize = databases.reduce((sum, database) => sum + (database['sizeOnDisk'] as number), 0);
    return { databases, totalSize, totalSizeMb: Math.floor(totalSize / 2 ** 20) };
  },
});
