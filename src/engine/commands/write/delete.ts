import type { Doc } from '../../codec/document.js';
import { badValue } from '../../errors.js';
import { numberOf } from '../../query/values/value.js';
import { batch, command, requireNamespace, statementReader } from '../command.js';
import { modifyMany, modifyOne, PartlyModified } from './modify.js';
import { requireWritable } from '../namespaces.js';
import { anything, collationOption, countOption, documentOption, flagOption, givenDocument } from '../options.js';
import { Pace } from '../pace.js';
import { compileQuery } from '../read/query.js';
import { readVariables } from '../read/variables.js';
import { describeWriteError } from './write-errors.js';

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
        const { q: filter } = statement;
        const limit = numberOf(statement.limit);
        if (limit !== 0 && limit !== 1) {
          throw badValue(`The limit field in delete objects must be 0 or 1. Got ${String(limit ?? statement.limit)}`);
        }
        const query = compileQuery(filter, {}, statement.hint, readVariables(options.let, statement.collation));
        const modification = { filter, query, update: null, upsert: false };
        const pace = new Pace(options.maxTimeMS, call.signal);
        if (limit === 1) n += (await modifyOne(call.core.storage, ns, modification, pace)) === null ? 0 : 1;
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
