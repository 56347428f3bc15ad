import { typeMismatch } from '../../errors.js';
import { type Call, type Command, readCount, requireNamespace } from '../command.js';

export const getMore: Command = {
  fields: ['collection', 'batchSize', 'term', 'lastKnownCommittedOpTime'],
  async run(call, body) {
    const ns = requireCursorNamespace(call, body['collection']);
    const id = readCursorId(body['getMore']);
    return { cursor: await call.core.cursors.more(ns, id, readCount(body, 'batchSize'), call.signal) };
  },
};

export const killCursors: Command = {
  fields: ['cursors'],
  run(call, body) {
    const ns = requireCursorNamespace(call, body['killCursors']);
    const ids = body['cursors'];
    if (!Array.isArray(ids)) throw typeMismatch("BSON field 'killCursors.cursors' must be an array");
    const cursorsKilled: bigint[] = [];
    const cursorsNotFound: bigint[] = [];
    for (const id of (ids as unknown[]).map(readCursorId)) {
      (call.core.cursors.close(id, ns) ? cursorsKilled : cursorsNotFound).push(id);
    }
    return { cursorsKilled, cursorsNotFound, cursorsAlive: [], cursorsUnknown: [] };
  },
};

function readCursorId(value: unknown): bigint {
  if (typeof value === 'bigint') return value;
  if (typeof value === 'number' && Number.isInteger(value)) return BigInt(value);
  throw typeMismatch('a cursor id must be a long');
}

/** What a cursor belongs to: a collection, or a command that is about none and answers under `$cmd.<command>`. */
function requireCursorNamespace(call: Call, name: unknown): string {
  if (typeof name === 'string' && /^\$cmd\.[A-Za-z]+$/.test(name)) return `${call.db}.${name}`;
  return requireNamespace(call, name);
}
