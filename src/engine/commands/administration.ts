import { statSync } from 'node:fs';
import type { Doc } from '../codec/document.js';
import { CODES, EngineError } from '../errors.js';
import { equalValues } from '../query/values/compare.js';
import type { Storage } from '../storage/storage.js';
import type { CollectionEntry, IndexDefinition } from '../storage/keys/index-definition.js';
import { command, requireNamespace } from './command.js';
import { SERVER_VERSION } from './handshake.js';
import { readExpirySeconds } from './index-specs.js';
import { documentOption, flagOption, ignored } from './options.js';

const HIDDEN = flagOption(false);

/** Changes the expiry or the visibility of one index; other changes are refused. */
export const collMod = command({
  options: { index: documentOption },
  async run(call, { index: change }, target) {
    const ns = requireNamespace(call, target);
    for (const field of Object.keys(change)) {
      if (!['name', 'keyPattern', 'expireAfterSeconds', 'hidden'].includes(field)) {
        throw new EngineError(CODES.InvalidOptions, `collMod cannot change '${field}' of an index in this engine`);
      }
    }
    const { storage } = call.core;
    return storage.queue.write(() => {
      const collection = storage.catalog.find(ns);
      if (collection === null) throw new EngineError(CODES.NamespaceNotFound, `ns does not exist: ${ns}`);
      if (Object.keys(change).length === 0) return {};
      const index = requireIndex(collection, change);
      const reply: Doc = {};
      const next: Partial<IndexDefinition> = {};
      if (change['expireAfterSeconds'] !== undefined) {
        const seconds = readExpirySeconds(change['expireAfterSeconds'], CODES.InvalidOptions);
        if (Object.keys(index.key).length > 1) {
          throw new EngineError(CODES.InvalidOptions, 'only a single-field index can expire documents');
        }
        if (index.expireAfterSeconds !== undefined) reply['expireAfterSeconds_old'] = index.expireAfterSeconds;
        reply['expireAfterSeconds_new'] = next.expireAfterSeconds = seconds;
      }
      if (change['hidden'] != null) {
        reply['hidden_old'] = index.hidden;
        reply['hidden_new'] = next.hidden = HIDDEN.read(change['hidden'], 'hidden', 'collMod.index');
      }
      storage.catalog.changeIndex(collection, index.id, next);
      return reply;
    });
  },
});

function requireIndex(collection: CollectionEntry, change: Doc): IndexDefinition {
  const index = collection.definition.indexes.find(
    (candidate) =>
      candidate.name === change['name'] ||
      (change['keyPattern'] !== undefined && equalValues(candidate.key, change['keyPattern'])),
  );
  if (index === undefined) throw new EngineError(CODES.IndexNotFound, `cannot find index for ns ${collection.ns}`);
  return index;
}

export const collStats = command({
  options: { scale: ignored },
  run(call, _options, target) {
    const ns = requireNamespace(call, target);
    const { storage } = call.core;
    storage.refresh();
    const collection = storage.catalog.find(ns);
    const { documents, bytes } =
      collection === null ? { documents: 0, bytes: 0 } : storage.catalog.counts(collection.id);
    return {
      ns,
      count: documents,
      size: bytes,
      avgObjSize: documents === 0 ? 0 : Math.round(bytes / documents),
      storageSize: bytes,
      nindexes: collection === null ? 0 : collection.indexes.length + 1,
      capped: false,
    };
  },
});

export const dbStats = command({
  options: { scale: ignored, freeStorage: ignored },
  run(call) {
    const { storage } = call.core;
    storage.refresh();
    const collections = storage.catalog.list(`${call.db}.`);
    const sizes = collections.map((collection) => storage.catalog.counts(collection.id));
    const objects = sizes.reduce((sum, size) => sum + size.documents, 0);
    const dataSize = sizes.reduce((sum, size) => sum + size.bytes, 0);
    return {
      db: call.db,
      collections: collections.length,
      views: 0,
      objects,
      avgObjSize: objects === 0 ? 0 : dataSize / objects,
      dataSize,
      storageSize: dataSize,
      indexes: collections.reduce((sum, collection) => sum + collection.indexes.length + 1, 0),
    };
  },
});

export const serverStatus = command({
  options: {
    repl: ignored,
    metrics: ignored,
    locks: ignored,
    network: ignored,
    opcounters: ignored,
    mirroredReads: ignored,
    latchAnalysis: ignored,
    wiredTiger: ignored,
    recordStats: ignored,
  },
  run(call) {
    const { storage, cursors, startedAt, commandCounts } = call.core;
    const uptimeMillis = Date.now() - startedAt;
    return {
      host: 'localhost',
      version: SERVER_VERSION,
      process: 'bsvc',
      pid: process.pid,
      uptime: uptimeMillis / 1000,
      uptimeMillis,
      localTime: new Date(),
      storageEngine: { name: 'lmdb', persistent: true, supportsCommittedReads: true },
      metrics: {
        commands: Object.fromEntries([...commandCounts].map(([name, total]) => [name, { total }])),
        cursor: { open: { total: cursors.count } },
      },
      mem: { resident: Math.round(process.memoryUsage.rss() / 2 ** 20), supported: true },
      storage: storageStats(storage),
    };
  },
});

/** How large the data file is and how much of it is in use. */
export interface StorageStats {
  fileBytes: number;
  /** Pages that hold nothing and will be used again. */
  freeBytes: number;
  /** For how long the oldest snapshot has been held, by whatever process: nothing freed since can be used again. */
  oldestSnapshotMs: number;
  collections: number;
  documents: number;
  documentBytes: number;
}

/** The sizes of the data file and of what is in it, as this process sees them now. */
export function storageStats(storage: Storage): StorageStats {
  storage.refresh();
  const collections = storage.catalog.list('');
  const sizes = collections.map((collection) => storage.catalog.counts(collection.id));
  const stats = storage.environment.store.getStats() as PageStats & {
    pageSize: number;
    lastPageNumber: number;
    free: PageStats;
  };
  const usedPages = META_PAGES + countPages(stats) + countPages(stats.free);
  return {
    fileBytes: statSync(storage.environment.path).size,
    freeBytes: Math.max(0, stats.lastPageNumber + 1 - usedPages) * stats.pageSize,
    oldestSnapshotMs: Math.round(storage.snapshots.check()[0]?.ageMs ?? 0),
    collections: collections.length,
    documents: sizes.reduce((sum, size) => sum + size.documents, 0),
    documentBytes: sizes.reduce((sum, size) => sum + size.bytes, 0),
  };
}

/** LMDB's figures about the pages of one tree. */
interface PageStats {
  treeBranchPageCount: number;
  treeLeafPageCount: number;
  overflowPages: number;
}

const META_PAGES = 2;

function countPages({ treeBranchPageCount, treeLeafPageCount, overflowPages }: PageStats): number {
  return treeBranchPageCount + treeLeafPageCount + overflowPages;
}
