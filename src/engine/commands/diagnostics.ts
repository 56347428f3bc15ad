import { availableParallelism, hostname, machine, platform, release, totalmem, type } from 'node:os';
import { type Doc, isDocument } from '../codec/document.js';
import { CODES, EngineError } from '../errors.js';
import { verifyStorage } from '../storage/checks/verify.js';
import { readPages } from '../planner/scans/entry-walk.js';
import { successor } from '../planner/key-ranges.js';
import { ownerKey } from '../storage/catalog/catalog.js';
import { INDEX_SPACE } from '../storage/format/key-spaces.js';
import type { Storage } from '../storage/storage.js';
import { collStats } from './administration.js';
import { type Call, command, requireNamespace } from './command.js';
import { SERVER_VERSION } from './handshake.js';
import { anything, ignored, refusedFlag } from './options.js';

const NO_REPAIR = 'this engine does not repair: restore a backup';

/** Reads the whole data file as `bsvc doctor --deep` does; what is wrong with other collections is told too. */
export const validateCommand = command({
  options: {
    repair: refusedFlag(NO_REPAIR),
    full: ignored,
    metadata: ignored,
    checkBSONConformance: ignored,
    scandata: ignored,
    background: ignored,
  },
  async run(call, _options, target) {
    const ns = requireNamespace(call, target);
    const { storage } = call.core;
    storage.refresh();
    const collection = storage.catalog.find(ns);
    if (collection === null) {
      throw new EngineError(CODES.NamespaceNotFound, `Collection '${ns}' does not exist to validate.`);
    }
    const { documents, indexes } = storage.catalog.counts(collection.id);
    const keysPerIndex: Doc = { _id_: documents };
    for (const { definition } of collection.indexes) {
      keysPerIndex[definition.name] = indexes.get(definition.id)?.entries ?? 0;
    }
    const errors = await verifyStorage(storage, call.signal === undefined ? {} : { signal: call.signal });
    return {
      ns,
      nrecords: documents,
      nIndexes: collection.indexes.length + 1,
      keysPerIndex,
      valid: errors.length === 0,
      errors,
      warnings: [],
    };
  },
});

const FEATURE_VERSION = { version: SERVER_VERSION.split('.').slice(0, 2).join('.') };

export const getParameter = command({
  options: { featureCompatibilityVersion: anything, logComponentVerbosity: anything, allParameters: ignored },
  run(_call, { featureCompatibilityVersion, logComponentVerbosity }, target) {
    const wantsAll = target === '*';
    const reply: Doc = {
      ...(wantsAll || featureCompatibilityVersion !== undefined
        ? { featureCompatibilityVersion: FEATURE_VERSION }
        : {}),
      ...(wantsAll || logComponentVerbosity !== undefined ? { logComponentVerbosity: { verbosity: 0 } } : {}),
    };
    if (Object.keys(reply).length === 0) throw new EngineError(CODES.InvalidOptions, 'no option found to get');
    return reply;
  },
});

const LOGS = ['global', 'startupWarnings'];

/** The engine logs nothing of its own. */
export const getLog = command({
  options: {},
  run(_call, _options, name) {
    if (name === '*') return { names: LOGS };
    if (!LOGS.includes(name as string)) throw new EngineError(CODES.OperationFailed, `No log named '${String(name)}'`);
    return { totalLinesWritten: 0, log: [] };
  },
});

/** What is known of the machine. */
export const hostInfo = command({
  options: {},
  run: () => ({
    system: {
      currentTime: new Date(),
      hostname: hostname(),
      cpuAddrSize: 64,
      memSizeMB: Math.round(totalmem() / 2 ** 20),
      numCores: availableParallelism(),
      cpuArch: machine(),
    },
    os: { type: type(), name: platform(), version: release() },
    extra: {},
  }),
});

export const getCmdLineOpts = command({ options: {}, run: () => ({ argv: [], parsed: {} }) });

export const whatsmyuri = command({ options: {}, run: () => ({ you: '127.0.0.1' }) });

/** Always empty: operations under way are not recorded. */
export const currentOp = command({ options: { $all: ignored, $ownOps: ignored }, run: () => ({ inprog: [] }) });

const NO_USERS =
  'This server has no users: only its own machine reaches it. Leave user and password out of the connection string';

/** Commands that clients send and that will not be there, with the code and the words of their refusal. */
export const REFUSED_COMMANDS: Readonly<Record<string, readonly [code: number, text: string]>> = {
  saslStart: [CODES.AuthenticationFailed, NO_USERS],
  saslContinue: [CODES.AuthenticationFailed, NO_USERS],
  authenticate: [CODES.AuthenticationFailed, NO_USERS],
  top: [
    CODES.CommandNotFound,
    "no such command: 'top'. The embedded engine keeps no times by collection; see serverStatus",
  ],
  dbHash: [
    CODES.CommandNotFound,
    "no such command: 'dbHash'. There are no replicas to compare; validate checks the checksums",
  ],
  replSetGetStatus: [CODES.NoReplicationEnabled, 'not running with --replSet: the embedded engine has no replicas'],
};

/**
 * A pipeline that begins with a stage about the collection or the server instead of its documents, begun with what that
 * stage yields; any other as it is.
 */
export function answerLeadingStage(call: Call, collection: unknown, pipeline: unknown): unknown {
  if (!Array.isArray(pipeline)) return pipeline;
  const [first, ...rest] = pipeline as unknown[];
  if (!isDocument(first)) return pipeline;
  const [name, ...more] = Object.keys(first);
  if (more.length > 0) return pipeline;
  if (name === '$currentOp') return [{ $documents: [] }, ...rest];
  if (name === '$indexStats') {
    return [{ $documents: { $literal: indexStats(call, collection, first[name]) } }, ...rest];
  }
  if (name === '$collStats') {
    return [{ $documents: { $literal: [collectionStats(call, collection, first[name])] } }, ...rest];
  }
  return pipeline;
}

/** Uses are not counted: each index says 0 of them, since this process began. */
function indexStats(call: Call, collection: unknown, spec: unknown): Doc[] {
  if (!isDocument(spec) || Object.keys(spec).length > 0) {
    throw new EngineError(28803, 'The $indexStats stage specification must be an empty object');
  }
  const { storage, startedAt } = call.core;
  const ns = requireNamespace(call, collection);
  storage.refresh();
  const found = storage.catalog.find(ns);
  if (found === null) return [];
  const accesses = { ops: 0, since: new Date(startedAt) };
  const specs = [
    { name: '_id_', key: { _id: 1 } },
    ...found.indexes.map(({ definition: { name, key } }) => ({ name, key })),
  ];
  return specs.map(({ name, key }) => ({ name, key, host: hostname(), accesses, spec: { v: 2, key, name } }));
}

/** The pages of each index; of neighbours that share one, it counts for both. */
function indexSizes(storage: Storage, ns: string): { indexSizes: Doc; totalIndexSize: number } {
  const sizes: Doc = { _id_: 0 };
  let total = 0;
  readPages(storage, (pages) => {
    const state = pages.readState();
    for (const { definition } of storage.catalog.find(ns)!.indexes) {
      const start = ownerKey(INDEX_SPACE, definition.id);
      const bytes = pages.bytesOf(state, start, successor(start));
      sizes[definition.name] = bytes;
      total += bytes;
    }
  });
  return { indexSizes: sizes, totalIndexSize: total };
}

function collectionStats(call: Call, collection: unknown, spec: unknown): Doc {
  if (!isDocument(spec)) throw new EngineError(5447000, '$collStats must take a nested object');
  const { core } = call;
  core.storage.refresh();
  const ns = requireNamespace(call, collection);
  if (core.storage.catalog.find(ns) === null) {
    throw new EngineError(CODES.NamespaceNotFound, `Collection [${ns}] not found.`);
  }
  const reply: Doc = { ns, host: 'localhost', localTime: new Date() };
  for (const wanted of Object.keys(spec)) {
    const stats = collStats.run(call, { collStats: collection }) as Doc;
    if (wanted === 'count') {
      reply['count'] = stats['count'];
    } else if (wanted === 'storageStats') {
      reply['storageStats'] = { ...stats, ns: undefined, ...indexSizes(core.storage, ns) };
    } else {
      throw new EngineError(CODES.InvalidOptions, `$collStats.${wanted} is not kept by the embedded engine`);
    }
  }
  return reply;
}
