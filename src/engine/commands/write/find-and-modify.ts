import { decodeDocument } from '../../codec/decode.js';
import { type Doc, RawDocument } from '../../codec/document.js';
import { failedToParse } from '../../errors.js';
import { compileProjection } from '../../query/project.js';
import { type Call, command, requireNamespace, requireWritable } from '../command.js';
import { atOneMoment, type Modification, type Modified, modifyOne, modifyOneInside } from './modify.js';
import { anything, countOption, documentOption, flagOption, givenDocument, ignored } from '../options.js';
import { Pace } from '../pace.js';
import type { Inside } from '../transactions.js';
import { compileQuery } from '../read/query.js';
import { readVariables } from '../read/variables.js';
import { MODIFICATION_OPTIONS, readModification } from './update.js';

export const findAndModify = command({
  options: {
    ...MODIFICATION_OPTIONS,
    query: documentOption,
    remove: flagOption(false),
    update: anything,
    new: flagOption(false),
    fields: documentOption,
    let: givenDocument,
    maxTimeMS: countOption(undefined),
    bypassDocumentValidation: ignored,
  },
  async run(call, options, target) {
    const ns = requireNamespace(call, target);
    requireWritable(ns);
    const modification = readFindAndModify(options);
    const present = presenter(options, modification);
    return present(await modifyOne(call.core.storage, ns, modification, new Pace(options.maxTimeMS, call.signal)));
  },
});

type Options = ReturnType<typeof findAndModify.read>;

/** The command as a part of a transaction. */
export function findAndModifyInside(call: Call, body: Doc): Inside {
  const options = findAndModify.read(body, 'findAndModify');
  const ns = requireNamespace(call, body['findAndModify']);
  requireWritable(ns);
  const modification = atOneMoment(readFindAndModify(options));
  const present = presenter(options, modification);
  return (storage) => present(modifyOneInside(storage, ns, modification));
}

/** Makes the reply of what was modified. */
function presenter(
  { remove, fields, new: wantsNew }: Options,
  { query }: Modification,
): (modified: Modified | null) => Doc {
  const projection = Object.keys(fields).length === 0 ? null : compileProjection(fields);
  const present = (bytes: Buffer): Doc => {
    const doc = decodeDocument(bytes);
    return projection!.apply(doc, query.filter.match(doc));
  };
  return (modified) => {
    const shown = modified === null ? null : wantsNew ? modified.after : modified.before;
    const value = shown === null ? null : projection === null ? new RawDocument(shown) : present(shown);
    if (remove) return { lastErrorObject: { n: modified === null ? 0 : 1 }, value };
    const lastErrorObject: Doc = { n: modified === null ? 0 : 1, updatedExisting: modified?.before != null };
    if (modified !== null && modified.before === null) lastErrorObject['upserted'] = modified.upsertedId;
    return { lastErrorObject, value };
  };
}

function readFindAndModify(options: Options): Modification {
  const { remove, update, upsert, query: filter, sort, hint, new: wantsNew } = options;
  const environment = readVariables(options.let, options.collation);
  if (!remove) {
    if (update === undefined) throw failedToParse('Either an update or remove=true must be specified');
    return readModification(filter, update, options, environment);
  }
  if (update !== undefined) throw failedToParse('Cannot specify both an update and remove=true');
  if (upsert) throw failedToParse('Cannot specify both upsert=true and remove=true');
  if (wantsNew) {
    throw failedToParse("Cannot specify both new=true and remove=true; 'remove' always returns the deleted document");
  }
  return { filter, query: compileQuery(filter, sort, hint, environment), update: null, upsert: false };
}
