import { EngineError } from '../errors.js';
import { type Call, type Command, readCount, requireNamespace } from './command.js';

export const getMore: Command = {
  fields: ['collection', 'batchSize', 'term', 'lastKnownCommittedOpTime'],
  async run(call, body) {
    const ns = requireCursorNamespace(call, body['collection']);
    const id = body['getMore'];
    if (typeof id !== 'bigint' && typeof id !== 'number') throw new EngineError(14, 'cursor id must be a long');
    return { cursor: await call.core.cursors.more(ns, BigInt(id), readCount(body, 'batchSize'), call.signal) };
  },
};

export const killCursors: Command = {
  fields: ['cursors'],
  run(call, body) {
    const ns = requireCursorNamespace(call, body['killCursors']);
    const ids = body['cursors'];
    if (!Array.isArray(ids)) throw new EngineError(14, "BSON field 'killCursors.cursors' must be an array");
    const cursorsKilled: bigint[] = [];
    const cursorsNotFound: bigint[] = [];
    for (const given of ids as unknown[]) {
      const id = BigInt(given as number | bigint);
      (call.core.cursors.close(id, ns) ? cursorsKilled : cursorsNotFound).push(id);
    }
    return { cursorsKilled, cursorsNotFound, cursorsAlive: [], cursorsUnknown: [] };
  },
};

/** What a cursor belongs to: a collection, or a command that is about none and answers under `$cmd.<command>`. */
function requireCursorNamespace(call: Call, name: unknown): string {
  if (typeof name === 'string' && /^\$cmd\.[A-Za-z]+$/.test(name)) return `${call.db}.${name}`;
  return requireNamespace(call, name);
}
