import type { App } from '../../../app.js';
import { AppError, forbidden } from '../../../errors.js';
import { mapInTurns } from '../../../scheduler.js';
import type { Collection } from '../../collections/collection.js';
import { USERS } from '../../collections/users-collection.js';
import type { StoredDocument } from '../store/document.js';
import { documentStore } from '../store/document-store.js';
import { insertEachRecord } from './commit-each.js';
import { ImportNotes, readForeignValue, readImportedDocument } from './imported-document.js';
import { requireKeyField, upsertEach, type Accepted, type ImportOutcome } from './upsert-documents.js';

export interface ImportOptions {
  dryRun?: boolean;
  /** A unique field, or `_id`: a document that has the same value is changed instead of a second one stored. */
  key?: string;
  /** Documents whose `_id` is there already stay as they are and are counted as `present`, not refused. */
  keepPresent?: boolean;
}

/**
 * Stores a batch of values from a file. Each one is independent: what does not fit, or is there already, is reported
 * and the others are stored. Reports a duplicate `_id` too, so that an interrupted import of an export can be repeated.
 * 403 for `users`, 400 for a key that is not unique. `dryRun` stores nothing: each value is checked by itself, and
 * `inserted` counts those that fit.
 */
export async function importDocuments(
  app: App,
  collection: Collection,
  values: readonly unknown[],
  { dryRun = false, key, keepPresent = false }: ImportOptions = {},
): Promise<ImportOutcome> {
  if (collection.name === USERS) {
    throw forbidden('USERS_BLOCKED', 'Users cannot be imported as documents: use "bsvc user create"');
  }
  if (key !== undefined) requireKeyField(collection, key);
  const rejected: ImportOutcome['rejected'] = [];
  const accepted: Accepted[] = [];
  const now = app.clock.now();
  const notes = new ImportNotes();
  await mapInTurns(values, (value, index) => {
    const noted: [field: string, message: string][] = [];
    try {
      const own = readForeignValue(collection, value, (...each) => void noted.push(each));
      accepted.push({ index, value: own, document: readImportedDocument(collection, own, now) });
      for (const [field, message] of noted) notes.add(field, message, index);
    } catch (error) {
      if (!(error instanceof AppError)) throw error;
      rejected.push({ index, message: describeAll(error) });
    }
  });
  const outcome = await storeAccepted(app, collection, accepted, rejected, { dryRun, key, keepPresent });
  return notes.list.length === 0 ? outcome : { ...outcome, notes: notes.list };
}

async function storeAccepted(
  app: App,
  collection: Collection,
  accepted: Accepted[],
  rejected: ImportOutcome['rejected'],
  { dryRun, key, keepPresent }: ImportOptions,
): Promise<ImportOutcome> {
  if (accepted.length === 0 || (dryRun && !keepPresent)) return { inserted: accepted.length, rejected };
  if (key !== undefined) return upsertEach(app, collection, key, accepted, rejected);
  const there = keepPresent ? await findPresent(app, collection, accepted) : new Set<string>();
  const fresh = accepted.filter(({ document }) => !there.has(document._id.toHexString()));
  const present = keepPresent ? { present: accepted.length - fresh.length } : {};
  if (fresh.length === 0 || dryRun) return { inserted: fresh.length, ...present, rejected };
  const documents = fresh.map(({ document }) => document);
  const refusals = await insertEachRecord(app, collection, documents);
  for (const [position, message] of refusals) rejected.push({ index: fresh[position]!.index, message });
  rejected.sort((a, b) => a.index - b.index);
  return { inserted: fresh.length - refusals.size, ...present, rejected };
}

/** Ids of those that are stored, in the trash too. */
async function findPresent(app: App, collection: Collection, accepted: readonly Accepted[]): Promise<Set<string>> {
  const ids = accepted.map(({ document }) => document._id);
  const found = documentStore(app, collection)
    .find({ _id: { $in: ids } })
    .project({ _id: 1 });
  return new Set((await found.toArray()).map(({ _id }) => (_id as StoredDocument['_id']).toHexString()));
}

/** Every broken rule of a value, not only the first one. */
function describeAll({ message, details = [] }: AppError): string {
  const [first, ...more] = details.map((problem) => problem.message);
  return first === undefined ? message : [message, ...more].join('; ');
}
