import type { App } from '../../../app.js';
import { AppError, forbidden } from '../../../errors.js';
import { mapInTurns } from '../../../turns.js';
import type { Collection } from '../../collections/collection.js';
import { USERS } from '../../collections/users-collection.js';
import { insertEachRecord } from '../store/document-store.js';
import { requireKeyField, upsertEach, type Accepted, type ImportOutcome } from './upsert-documents.js';
import { readImportedDocument } from './imported-document.js';

export interface ImportOptions {
  dryRun?: boolean;
  /** A unique field, or `_id`: a document that has the same value is changed instead of a second one stored. */
  key?: string;
}

/**
 * Stores a batch of values from a file. Each one stands for itself: what does not fit, or is there already, is reported
 * and the others are stored. Reports a duplicate `_id` too, so that an interrupted import of an export can be repeated.
 * 403 for `users`, 400 for a key that is not unique. `dryRun` stores nothing: each value is checked by itself, and
 * `inserted` counts those that fit.
 */
export async function importDocuments(
  app: App,
  collection: Collection,
  values: readonly unknown[],
  { dryRun = false, key }: ImportOptions = {},
): Promise<ImportOutcome> {
  if (collection.name === USERS) {
    throw forbidden('USERS_BLOCKED', 'Users cannot be imported as documents: use "bsvc user create"');
  }
  if (key !== undefined) requireKeyField(collection, key);
  const rejected: ImportOutcome['rejected'] = [];
  const accepted: Accepted[] = [];
  const now = app.clock.now();
  await mapInTurns(values, (value, index) => {
    try {
      accepted.push({ index, value, document: readImportedDocument(collection, value, now) });
    } catch (error) {
      if (!(error instanceof AppError)) throw error;
      rejected.push({ index, message: describeAll(error) });
    }
  });
  if (accepted.length === 0 || dryRun) return { inserted: accepted.length, rejected };
  const documents = accepted.map(({ document }) => document);
  if (key !== undefined) return upsertEach(app, collection, key, accepted, rejected);
  const refusals = await insertEachRecord(app, collection, documents);
  for (const [position, message] of refusals) rejected.push({ index: accepted[position]!.index, message });
  rejected.sort((a, b) => a.index - b.index);
  return { inserted: accepted.length - refusals.size, rejected };
}

/** Every broken rule of a value, not only the first one. */
function describeAll({ message, details = [] }: AppError): string {
  const [first, ...more] = details.map((problem) => problem.message);
  return first === undefined ? message : [message, ...more].join('; ');
}
