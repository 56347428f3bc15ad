import type { ExpressionContext } from '../../query/expression.js';
import { compileProjection } from '../../query/project.js';
import { CODES, refusal, typeMismatch, unsupported } from '../../errors.js';
import { type Doc, isDocument, type Row } from '../../codec/document.js';
import { numberOf } from '../../query/values/value.js';
import { type Call, command, requireNamespace } from '../command.js';
import {
  anything,
  collationOption,
  countOption,
  documentOption,
  flagOption,
  givenDocument,
  ignored,
  type Option,
  refusedFlag,
} from '../options.js';
import type { RowSource } from './cursors.js';
import { FindRows, MAX_BATCH_BYTES, NO_ROWS, type RowsOptions } from './find-rows.js';
import { openPace, Pace } from '../pace.js';
import type { Inside } from '../transactions.js';
import { NearRows, readNear } from './near-rows.js';
import { compileQuery } from './query.js';
import { readVariables } from './variables.js';
import type { Storage } from '../../storage/storage.js';

const NO_KEYS = 'returnKey and showRecordId are not supported by this engine';

/** An empty one is sent by tools that mean none. */
const refusedBounds: Option<undefined> = {
  fallback: undefined,
  read(value, name) {
    if (isDocument(value) && Object.keys(value).length === 0) return undefined;
    throw unsupported(`${name} of find is not supported by this engine: write the bounds into the filter`);
  },
};

/** A negative limit asks for one batch only, as the old protocol did. */
const limit: Option<number> = {
  fallback: 0,
  read(value, name, of) {
    const number = numberOf(value);
    if (number === null) throw typeMismatch(`BSON field '${of}.${name}' is the wrong type, expected a number`);
    return Number.isNaN(number) ? 0 : Math.trunc(number);
  },
};

export const find = command({
  options: {
    filter: documentOption,
    sort: documentOption,
    projection: givenDocument,
    hint: anything,
    skip: countOption(0),
    limit,
    batchSize: countOption(undefined),
    // Of this engine alone.
    batchBytes: countOption(MAX_BATCH_BYTES),
    singleBatch: flagOption(false),
    collation: collationOption,
    let: givenDocument,
    maxTimeMS: countOption(undefined),
    min: refusedBounds,
    max: refusedBounds,
    returnKey: refusedFlag(NO_KEYS),
    showRecordId: refusedFlag(NO_KEYS),
    allowDiskUse: ignored,
    noCursorTimeout: ignored,
    allowPartialResults: ignored,
  },
  leaves: true,
  run(call, options, target) {
    const ns = requireNamespace(call, target);
    const { limit } = options;
    call.core.storage.refresh();
    const source = openFindRows(call.core.storage, ns, options, openPace(call, options.maxTimeMS));
    const batchSize = limit < 0 ? -limit : options.batchSize;
    const cursor = call.core.cursors.begin(ns, source, batchSize, limit < 0 || options.singleBatch);
    return cursor instanceof Promise ? cursor.then((begun) => ({ cursor: begun })) : { cursor };
  },
});

type FindOptions = ReturnType<typeof find.read>;

/** The command as a part of a transaction: all rows in one batch. */
export function findRowsInside(call: Call, body: Doc): Inside {
  const options = find.read(body, 'find');
  const ns = requireNamespace(call, body['find']);
  return (storage) => {
    const source = openFindRows(storage, ns, options, new Unhurried(undefined, undefined));
    const rows: Row[] = [];
    do {
      const next = source.next(Infinity);
      if (next instanceof Promise) {
        throw refusal(CODES.ExceededMemoryLimit, 'a find in a transaction has too many rows');
      }
      rows.push(...next);
    } while (!source.finished);
    return { cursor: { firstBatch: rows, id: 0n, ns } };
  };
}

/** Gives no turns to others: a write transaction is under way. */
class Unhurried extends Pace {
  override due(): boolean {
    return false;
  }
}

function openFindRows(storage: Storage, ns: string, options: FindOptions, pace: Pace): RowSource {
  const environment = readVariables(options.let, options.collation);
  const near = readNear(options.filter);
  const isSorted = Object.keys(options.sort).length > 0;
  const filter = near === null ? options.filter : near.condition;
  const query = compileQuery(filter, options.sort, options.hint, environment);
  const { skip, limit, batchBytes } = options;
  const rows = {
    skip,
    limit: Math.abs(limit),
    batchBytes: Math.min(batchBytes, MAX_BATCH_BYTES),
    ...readProjection(options, environment),
  };
  const collection = storage.catalog.find(ns);
  if (near !== null && !isSorted && collection !== null) {
    return new NearRows(storage, collection, near.nearest, rows, pace, environment);
  }
  return collection === null ? NO_ROWS : new FindRows(storage, collection, query, rows, pace);
}

const WHOLE = { projection: null, positional: false };

function readProjection(
  { projection }: FindOptions,
  environment: ExpressionContext | undefined,
): Pick<RowsOptions, keyof typeof WHOLE> {
  const fields = Object.keys(projection ?? {});
  if (projection === undefined || fields.length === 0) return WHOLE;
  return {
    projection: compileProjection(projection, environment === undefined ? {} : { environment }),
    positional: fields.some((path) => path.endsWith('.$')),
  };
}
