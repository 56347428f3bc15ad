import { conflict, invalid, tooLarge, type AppError } from '../../../errors.js';
import { namedPath } from '../../collections/fields/nocase.js';
import { isDuplicateKey } from '../../../platform/database/database.js';
import { PARALLEL_ARRAYS, PARALLEL_ARRAYS_TEXT, parallelArrays } from './parallel-arrays.js';

const DUPLICATE_KEY = 11_000;
/** A field with an index of places holds something else. */
const NO_PLACE = 16_755;
const NO_PLACE_TEXT =
  'A field with an index of places holds something else than {"type":"Point","coordinates":[longitude,latitude]} or [longitude,latitude]';
/** The index entries are too many for one transaction. */
export const TRANSACTION_TOO_LARGE = 257;
const TOO_MANY_ENTRIES_TEXT =
  'the document would have more than 10000 index entries: one for each item of an indexed array';
/** Errors by which a write of several documents may refuse one of them. */
export const EXPLAINED_CODES: ReadonlySet<number> = new Set([
  DUPLICATE_KEY,
  PARALLEL_ARRAYS,
  NO_PLACE,
  TRANSACTION_TOO_LARGE,
]);
const TOO_LARGE = new Set([10_334, 17_419, 17_420]);

/** What a refused write of documents is to its caller: the refusals of the database in our own words. */
export function explainWriteError(error: unknown): unknown {
  if (isDuplicateKey(error)) return duplicateValue(error);
  const { code } = error as { code?: unknown };
  if (code === PARALLEL_ARRAYS) return parallelArrays();
  if (code === NO_PLACE) return invalid('VALIDATION_FAILED', `Validation failed: ${NO_PLACE_TEXT}`);
  if (code === TRANSACTION_TOO_LARGE) return tooLarge('DOCUMENT_TOO_LARGE', `Too large: ${TOO_MANY_ENTRIES_TEXT}`);
  if (TOO_LARGE.has(code as number)) return grownTooLarge();
  return error;
}

function duplicateValue(error: Error & { keyPattern?: Record<string, unknown> }): AppError {
  const named = Object.keys(error.keyPattern ?? {}).map(namedPath);
  const fields = named.length > 0 ? named : duplicateFields(error.message);
  const message = `Duplicate value: another document has the same ${fields.join(' and ')}`;
  const details = fields.map((field) => ({ field, rule: 'unique', message }));
  return conflict('DUPLICATE_VALUE', message, { details, cause: error });
}

/**
 * The fields in the text of a duplicate key error, which is all that errors of bulk writes carry: our unique indexes
 * are named after their fields.
 */
function duplicateFields(text: string): string[] {
  const index = /index: (\S+) dup key/.exec(text)?.[1] ?? '';
  return index.startsWith('unique_') ? index.slice('unique_'.length).split(',').map(namedPath) : ['_id'];
}

/** One refused document of a write of several, as the database lists it. */
export interface WriteRefusal {
  index: number;
  code: number;
  errmsg?: string;
}

/** The refusal of one document in words. */
export function describeRefusal({ code, errmsg = '' }: WriteRefusal): string {
  if (code === PARALLEL_ARRAYS) return PARALLEL_ARRAYS_TEXT;
  if (code === NO_PLACE) return NO_PLACE_TEXT;
  if (code === TRANSACTION_TOO_LARGE) return TOO_MANY_ENTRIES_TEXT;
  const fields = duplicateFields(errmsg);
  if (fields.length > 1) return `${fields.join(' and ')} must be unique together: the values are taken`;
  const [field] = fields;
  return field === '_id' ? 'there is a document with this _id already' : `${field} must be unique: the value is taken`;
}

/** The 413 for a change that would make a document too large. */
export function grownTooLarge(): AppError {
  return tooLarge('DOCUMENT_TOO_LARGE', 'The document would grow beyond 2 MB');
}
