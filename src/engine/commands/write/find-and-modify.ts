import { decodeDocument } from '../../codec/decode.js';
import { type Doc, RawDocument } from '../../codec/document.js';
import { failedToParse } from '../../errors.js';
import { compileProjection } from '../../query/project.js';
import { checkCollation, type Command, readCount, readDoc, readFlagOption, requireNamespace } from '../command.js';
import { type Modification, modifyOne } from './modify.js';
import { requireWritable } from '../namespaces.js';
import { Pace } from '../pace.js';
import { compileQuery } from '../read/query.js';
import { readVariables } from '../read/variables.js';
import { readModification } from './update.js';

export const findAndModify: Command = {
  fields: [
    'query',
    'sort',
    'remove',
    'update',
    'new',
    'fields',
    'upsert',
    'arrayFilters',
    'hint',
    'collation',
    'bypassDocumentValidation',
    'let',
  ],
  async run(call, body) {
    const ns = requireNamespace(call, body['findAndModify'] ?? body['findandmodify']);
    requireWritable(ns);
    const remove = readFlagOption(body, 'remove');
    const wantsNew = readFlagOption(body, 'new');
    const modification = readFindAndModify(body, remove, wantsNew);
    const fields = readDoc(body, 'fields');
    const projection = Object.keys(fields).length === 0 ? null : compileProjection(fields);
    const pace = new Pace(readCount(body, 'maxTimeMS'), call.signal);

    const modified = await modifyOne(call.core.storage, ns, modification, pace);
    const shown = modified === null ? null : wantsNew ? modified.after : modified.before;
    const value = shown === null ? null : projection === null ? new RawDocument(shown) : present(shown);
    if (remove) return { lastErrorObject: { n: modified === null ? 0 : 1 }, value };
    const lastErrorObject: Doc = { n: modified === null ? 0 : 1, updatedExisting: modified?.before != null };
    if (modified !== null && modified.before === null) lastErrorObject['upserted'] = modified.upsertedId;
    return { lastErrorObject, value };

    function present(bytes: Buffer): Doc {
      const doc = decodeDocument(bytes);
      return projection!.apply(doc, modification.query.filter.match(doc));
    }
  },
};

function readFindAndModify(body: Doc, remove: boolean, wantsNew: boolean): Modification {
  const environment = readVariables(body);
  const filter = readDoc(body, 'query');
  const upsert = readFlagOption(body, 'upsert');
  if (!remove) {
    if (body['update'] === undefined) throw failedToParse('Either an update or remove=true must be specified');
    return readModification(filter, body['update'], body, upsert, environment);
  }
  if (body['update'] !== undefined) throw failedToParse('Cannot specify both an update and remove=true');
  if (upsert) throw failedToParse('Cannot specify both upsert=true and remove=true');
  if (wantsNew) {
    throw failedToParse("Cannot specify both new=true and remove=true; 'remove' always returns the deleted document");
  }
  checkCollation(body);
  const query = compileQuery(filter, readDoc(body, 'sort'), body['hint'], environment);
  return { filter, query, update: null, upsert: false };
}
