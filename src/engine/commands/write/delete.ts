import type { Doc } from '../../codec/document.js';
import { badValue } from '../../errors.js';
import {
  checkCollation,
  type Command,
  plainNumber,
  readCount,
  readDoc,
  readFlagOption,
  requireNamespace,
} from '../command.js';
import { modifyMany, modifyOne, PartlyModified } from './modify.js';
import { requireWritable } from '../namespaces.js';
import { Pace } from '../pace.js';
import { compileQuery } from '../read/query.js';
import { readStatements } from './update.js';
import { readVariables } from '../read/variables.js';
import { describeWriteError } from './write-errors.js';

const STATEMENT_FIELDS = new Set(['q', 'limit', 'hint', 'collation']);

export const deleteCommand: Command = {
  fields: ['deletes', 'ordered', 'let'],
  async run(call, body) {
    const ns = requireNamespace(call, body['delete']);
    requireWritable(ns);
    const environment = readVariables(body);
    const ordered = readFlagOption(body, 'ordered', true);
    const writeErrors: Doc[] = [];
    let n = 0;
    for (const [index, statement] of readStatements(body, 'deletes', STATEMENT_FIELDS).entries()) {
      try {
        checkCollation(statement);
        const filter = readDoc(statement, 'q');
        const limit = plainNumber(statement['limit']);
        if (limit !== 0 && limit !== 1) {
          throw badValue(`The limit field in delete objects must be 0 or 1. Got ${String(limit)}`);
        }
        const query = compileQuery(filter, {}, statement['hint'], environment);
        const modification = { filter, query, update: null, upsert: false };
        const pace = new Pace(readCount(body, 'maxTimeMS'), call.signal);
        if (limit === 1) n += (await modifyOne(call.core.storage, ns, modification, pace)) === null ? 0 : 1;
        else n += (await modifyMany(call.core.storage, ns, modification, pace)).matched;
      } catch (error) {
        if (error instanceof PartlyModified) n += error.result.matched;
        writeErrors.push(describeWriteError(index, error instanceof PartlyModified ? error.cause : error));
        if (ordered) break;
      }
    }
    return writeErrors.length === 0 ? { n } : { n, writeErrors };
  },
};
