import { typeMismatch } from '../../errors.js';
import { type Call, command, requireNamespace } from '../command.js';
import { anything, countOption, ignored, listOption } from '../options.js';

export const getMore = command({
  options: {
    collection: anything,
    batchSize: countOption(undefined),
    term: ignored,
    lastKnownCommittedOpTime: ignored,
  },
  async run(call, { collection, batchSize }, target) {
    const ns = requireCursorNamespace(call, collection);
    return { cursor: await call.core.cursors.more(ns, readCursorId(target), batchSize, call.signal) };
  },
});

export const killCursors = command({
  options: { cursors: listOption },
  run(call, { cursors: ids }, target) {
    const ns = requireCursorNamespace(call, target);
    if (ids === undefined) throw typeMismatch("BSON field 'killCursors.cursors' must be an array");
    const cursorsKilled: bigint[] = [];
    const cursorsNotFound: bigint[] = [];
    for (const id of ids.map(readCursorId)) {
      (call.core.cursors.close(id, ns) ? cursorsKilled : cursorsNotFound).push(id);
    }
    return { cursorsKilled, cursorsNotFound, cursorsAlive: [], cursorsUnknown: [] };
  },
});

function readCursorId(value: unknown): bigint {
  if (typeof value === 'bigint') return value;
  if (typeof value === 'number' && Number.isInteger(value)) return BigInt(value);
  throw typeMismatch('a cursor id must be a long');
}

/** The namespace of a cursor: a collection, or `$cmd.<command>` for a command that is about none. */
function requireCursorNamespace(call: Call, name: unknown): string {
  if (typeof name === 'string' && /^\$cmd\.[A-Za-z]+$/.test(name)) return `${call.db}.${name}`;
  return requireNamespace(call, name);
}
