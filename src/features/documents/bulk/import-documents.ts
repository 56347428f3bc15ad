import type { App } from '../../../app.js';
import { AppError, forbidden } from '../../../errors.js';
import type { Collection } from '../../collections/collection.js';
import type { StoredDocument } from '../store/document.js';
import { requireDatabaseRoom } from '../store/database-quota.js';
import { insertEachRecord } from '../store/document-store.js';
import { mapInTurns } from '../../../platform/processes/own-turn.js';
import { readImportedDocument } from './imported-document.js';

export interface ImportOutcome {
  inserted: number;
  /** Which of the values were refused and why, in order. */
  rejected: { index: number; message: string }[];
}

/**
 * Stores a batch of values from a file. Each one stands for itself: what does not fit, or is there already, is reported
 * and the others are stored. Reports a duplicate `_id` too, so that an interrupted import of an export can be repeated.
 * 403 for `users`. `dryRun` stores nothing: each value is checked by itself, and `inserted` counts those that fit.
 */
export async function importDocuments(
  app: App,
  collection: Collection,
  values: readonly unknown[],
  { dryRun = false }: { dryRun?: boolean } = {},
): Promise<ImportOutcome> {
  if (collection.name === 'users') {
    throw forbidden('USERS_BLOCKED', 'Users cannot be imported as documents: use "bsvc user create"');
  }
  const rejected: ImportOutcome['rejected'] = [];
  const accepted: { index: number; document: StoredDocument }[] = [];
  const now = app.clock.now();
  await mapInTurns(values, (value, index) => {
    try {
      accepted.push({ index, document: readImportedDocument(collection, value, now) });
    } catch (error) {
      if (!(error instanceof AppError)) throw error;
      rejected.push({ index, message: error.message });
    }
  });
  if (accepted.length === 0 || dryRun) return { inserted: accepted.length, rejected };
  await requireDatabaseRoom(
    app,
    collection.projectId,
    accepted.map(({ document }) => document),
  );
  const refusals = await insertEachRecord(
    app,
    collection,
    accepted.map(({ document }) => document),
  );
  for (const [position, message] of refusals) rejected.push({ index: accepted[position]!.index, message });
  rejected.sort((a, b) => a.index - b.index);
  return { inserted: accepted.length - refusals.size, rejected };
}
