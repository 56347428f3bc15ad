import { conflict, invalid, tooLarge, type AppError } from '../../../errors.js';
import { namedPath } from '../../collections/fields/nocase.js';
import { isDuplicateKey } from '../../../platform/database/database.js';

/** An index of several fields cannot hold the document, since two of them lead through different arrays. */
const PARALLEL_ARRAYS = 171;
const PARALLEL_ARRAYS_TEXT =
  'An index of the collection covers two fields that are arrays in this document: only one of them may be an array';
/** A field with an index of places holds something else. */
const NO_PLACE = 16_755;
const NO_PLACE_TEXT =
  'A field with an index of places holds something else than {"type":"Point","coordinates":[longitude,latitude]} or [longitude,latitude]';
/** The index entries are too many for one transaction. */
export const TRANSACTION_TOO_LARGE = 257;
const TOO_MANY_ENTRIES_TEXT =
  'the document would have more than 10000 index entries: one for each item of an indexed array';
const TOO_LARGE = new Set([10_334, 17_419, 17_420]);

/** What a refused write of documents is to its caller: the refusals of the database in our own words. */
export function explainWriteError(error: unknown): unknown {
  if (isDuplicateKey(error)) return duplicateValue(takenFields(error), error);
  const { code } = error as { code?: unknown };
  if (code === PARALLEL_ARRAYS) return invalid('VALIDATION_FAILED', `Validation failed: ${PARALLEL_ARRAYS_TEXT}`);
  if (code === NO_PLACE) return invalid('VALIDATION_FAILED', `Validation failed: ${NO_PLACE_TEXT}`);
  if (code === TRANSACTION_TOO_LARGE) {
    return tooLarge('DOCUMENT_TOO_LARGE', `Too large: ${TOO_MANY_ENTRIES_TEXT}`, { cause: error });
  }
  if (TOO_LARGE.has(code as number)) return grownTooLarge();
  return error;
}

/** The 409 for values that another document has. */
export function duplicateValue(fields: readonly string[], cause?: Error): AppError {
  const message = `Duplicate value: another document has the same ${fields.join(' and ')}`;
  const details = fields.map((field) => ({ field, rule: 'unique', message }));
  return conflict('DUPLICATE_VALUE', message, { details, cause });
}

function takenFields({ keyPattern, message }: Error & { keyPattern?: Record<string, unknown> }): string[] {
  const named = Object.keys(keyPattern ?? {}).map(namedPath);
  return named.length > 0 ? named : duplicateFields(message);
}

/**
 * The fields in the text of a duplicate key error, which is all that errors of bulk writes carry: our unique indexes
 * are named after their fields.
 */
function duplicateFields(text: string): string[] {
  const index = /index: (\S+) dup key/.exec(text)?.[1] ?? '';
  return index.startsWith('unique_')
    ? index.slice('unique_'.length).split('..', 1)[0]!.split(',').map(namedPath)
    : ['_id'];
}

/** The 409 for a document that was changed in between. */
export function changing(): AppError {
  return conflict('DOCUMENT_CHANGING', 'The document is being changed by others: try again', { retryAfterSeconds: 1 });
}

/** The 413 for a change that would make a document too large. */
export function grownTooLarge(): AppError {
  return tooLarge('DOCUMENT_TOO_LARGE', 'The document would grow beyond 2 MB');
}
