import type { ExpressionContext } from '../../query/expression.js';
import { compileProjection } from '../../query/project.js';
import type { Doc } from '../../codec/document.js';
import {
  type Call,
  checkCollation,
  type Command,
  plainNumber,
  readCount,
  readDoc,
  readFlagOption,
  requireNamespace,
} from '../command.js';
import { typeMismatch } from '../../errors.js';
import type { RowSource } from './cursors.js';
import { FindRows, NO_ROWS, type RowsOptions } from './find-rows.js';
import { openPace } from '../pace.js';
import { compileQuery } from './query.js';
import { readVariables } from './variables.js';

export const find: Command = {
  fields: [
    'filter',
    'sort',
    'projection',
    'hint',
    'skip',
    'limit',
    'batchSize',
    'singleBatch',
    'collation',
    'let',
    'allowDiskUse',
    'noCursorTimeout',
    'allowPartialResults',
    'returnKey',
    'showRecordId',
  ],
  leaves: true,
  run(call, body) {
    const ns = requireNamespace(call, body['find']);
    const limit = readLimit(body);
    const source = openFindRows(call, ns, body, Math.abs(limit));
    const batchSize = limit < 0 ? Math.abs(limit) : readCount(body, 'batchSize');
    const cursor = call.core.cursors.begin(ns, source, batchSize, limit < 0 || readFlagOption(body, 'singleBatch'));
    return cursor instanceof Promise ? cursor.then((begun) => ({ cursor: begun })) : { cursor };
  },
};

/** A negative limit asks for one batch only, as the old protocol did. */
function readLimit(body: Doc): number {
  const value = body['limit'];
  if (value === undefined || value === null) return 0;
  const limit = plainNumber(value);
  if (limit === undefined) throw typeMismatch("BSON field 'find.limit' is the wrong type, expected a number");
  return Number.isNaN(limit) ? 0 : Math.trunc(limit);
}

function openFindRows(call: Call, ns: string, body: Doc, limit: number): RowSource {
  const { storage } = call.core;
  checkCollation(body);
  if (readFlagOption(body, 'returnKey') || readFlagOption(body, 'showRecordId')) {
    throw typeMismatch('returnKey and showRecordId are not supported by this engine');
  }
  const environment = readVariables(body);
  const query = compileQuery(readDoc(body, 'filter'), readDoc(body, 'sort'), body['hint'], environment);
  const options = { skip: readCount(body, 'skip') ?? 0, limit, ...readProjection(body, environment) };
  const pace = openPace(call, body);
  storage.refresh();
  const collection = storage.catalog.find(ns);
  return collection === null ? NO_ROWS : new FindRows(storage, collection, query, options, pace);
}

const WHOLE = { projection: null, positional: false };

function readProjection(body: Doc, environment: ExpressionContext | undefined): Pick<RowsOptions, keyof typeof WHOLE> {
  if (body['projection'] === undefined) return WHOLE;
  const spec = readDoc(body, 'projection');
  const fields = Object.keys(spec);
  if (fields.length === 0) return WHOLE;
  return {
    projection: compileProjection(spec, environment === undefined ? {} : { environment }),
    positional: fields.some((path) => path.endsWith('.$')),
  };
}
