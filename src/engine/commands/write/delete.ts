import type { Doc } from '../../codec/document.js';
import { badValue } from '../../errors.js';
import { numberOf } from '../../query/values/value.js';
import {
  batch,
  type Call,
  command,
  requireNamespace,
  statementReader,
  requireWritable,
  describeWriteError,
} from '../command.js';
import {
  type Modification,
  modifyAllInside,
  modifyMany,
  modifyOne,
  modifyOneInside,
  PartlyModified,
} from './modify.js';
import { anything, collationOption, countOption, documentOption, flagOption, givenDocument } from '../options.js';
import { Pace } from '../pace.js';
import type { Inside } from '../transactions.js';
import { compileQuery } from '../read/query.js';
import { readVariables } from '../read/variables.js';
import type { Storage } from '../../storage/storage.js';

/** The statements of the command, read before the first is run. */
export const readDeletes = statementReader(
  { q: documentOption, limit: anything, hint: anything, collation: collationOption },
  'deletes',
);

export const deleteCommand = command({
  options: { deletes: batch, ordered: flagOption(true), let: givenDocument, maxTimeMS: countOption(undefined) },
  async run(call, options, target) {
    const ns = requireNamespace(call, target);
    requireWritable(ns);
    const writeErrors: Doc[] = [];
    let n = 0;
    for (const [index, statement] of readDeletes(options.deletes).entries()) {
      try {
        const { isOne, modification } = readStatement(options.let, statement);
        const pace = new Pace(options.maxTimeMS, call.signal);
        if (isOne) n += (await modifyOne(call.core.storage, ns, modification, pace)) === null ? 0 : 1;
        else n += (await modifyMany(call.core.storage, ns, modification, pace)).matched;
      } catch (error) {
        if (error instanceof PartlyModified) n += error.result.matched;
        writeErrors.push(describeWriteError(index, error instanceof PartlyModified ? error.cause : error));
        if (options.ordered) break;
      }
    }
    return writeErrors.length === 0 ? { n } : { n, writeErrors };
  },
});

function readStatement(
  variables: Doc | undefined,
  { q: filter, limit: given, hint, collation }: ReturnType<typeof readDeletes>[number],
): { isOne: boolean; modification: Modification } {
  const limit = numberOf(given);
  if (limit !== 0 && limit !== 1) {
    throw badValue(`The limit field in delete objects must be 0 or 1. Got ${String(limit ?? given)}`);
  }
  const query = compileQuery(filter, {}, hint, readVariables(variables, collation));
  return { isOne: limit === 1, modification: { filter, query, update: null, upsert: false } };
}

/** The command as a part of a transaction. */
export function deleteInside(call: Call, body: Doc): Inside {
  const options = deleteCommand.read(body, 'delete') as { deletes: readonly unknown[]; let: Doc | undefined };
  const ns = requireNamespace(call, body['delete']);
  requireWritable(ns);
  const statements = readDeletes(options.deletes).map((statement) => readStatement(options.let, statement));
  return (storage) => {
    let n = 0;
    for (const { isOne, modification } of statements) {
      if (isOne) n += modifyOneInside(storage, ns, modification) === null ? 0 : 1;
      else n += modifyAllInside(storage, ns, modification).matched;
    }
    return { n };
  };
}

/**
 * Deletes the documents whose TTL indexes say that their time is over: the indexed date (any of them, in an array) plus
 * `expireAfterSeconds` lies before `now`. Returns how many. Several processes may do it at once.
 */
export async function expireDocuments(storage: Storage, now = new Date()): Promise<number> {
  storage.refresh();
  let deleted = 0;
  for (const collection of storage.catalog.list('')) {
    for (const { definition } of collection.indexes) {
      const { expireAfterSeconds, state, key, name, partialFilterExpression } = definition;
      if (expireAfterSeconds === undefined || state !== 'ready') continue;
      const [path] = Object.keys(key);
      const expired: Doc = { [path!]: { $lt: new Date(now.getTime() - expireAfterSeconds * 1000) } };
      const filter = partialFilterExpression === undefined ? expired : { $and: [expired, partialFilterExpression] };
      const query = compileQuery(filter, {}, name);
      const modification = { filter, query, update: null, upsert: false };
      deleted += (await modifyMany(storage, collection.ns, modification, new Pace(undefined, undefined))).matched;
    }
  }
  return deleted;
}
