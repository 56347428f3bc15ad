import type { App } from '../../../app.js';
import { conflict, type AppError } from '../../../errors.js';
import { documentsName, type Collection } from '../collection.js';
import { PENDING } from './document-indexes.js';

const MAX_LISTED = 20;
const MAX_SHOWN = 80;

interface SharedValue {
  _id: unknown;
  count: number;
}

/** The database's error when a unique index cannot be built: the first value it met twice. */
type DuplicateKey = Error & { keyPattern?: Record<string, unknown>; keyValue?: Record<string, unknown> };

/** The 409 that names which values keep a field from being unique, the most frequent ones first. */
export async function explainDuplicates(
  app: Pick<App, 'db'>,
  collection: Collection,
  cause: DuplicateKey,
): Promise<AppError> {
  const fields = Object.keys(cause.keyPattern ?? {});
  const shared = await listShared(app, collection, fields);
  // Items of arrays count one by one, but are listed as arrays.
  const found = shared.length > 0 ? shared : [{ _id: fields.map((name) => cause.keyValue?.[name]), count: null }];
  return notUnique(fields, found, cause);
}

/** The same 409 before an index is built; values in arrays are not looked at. Changes nothing. */
export async function requireUnique(app: Pick<App, 'db'>, collection: Collection, fields: string[]): Promise<void> {
  const shared = await listShared(app, collection, fields);
  if (shared.length > 0) throw notUnique(fields, shared);
}

function notUnique(fields: string[], shared: { _id: unknown; count: number | null }[], cause?: unknown): AppError {
  const field = fields.join(' and ') || 'a field';
  const details = shared.map(({ _id, count }) => ({
    field,
    rule: 'unique',
    message: `${[_id].flat().map(shown).join(' with ')} is in ${count ?? 'several'} documents`,
  }));
  const list = details.map(({ message }) => message).join('; ');
  return conflict('DUPLICATE_VALUE', `${field} cannot be unique, since documents share values: ${list}`, {
    details,
    cause,
  });
}

function listShared(app: Pick<App, 'db'>, collection: Collection, fields: readonly string[]): Promise<SharedValue[]> {
  const present = Object.fromEntries(fields.map((field) => [field, { $exists: true }]));
  return app.db
    .collection(documentsName(collection))
    .aggregate<SharedValue>([
      { $match: { isDeleted: { $in: [false, PENDING] }, ...present } },
      { $group: { _id: fields.map((field) => `$${field}`), count: { $sum: 1 } } },
      { $match: { count: { $gt: 1 } } },
      { $sort: { count: -1, _id: 1 } },
      { $limit: MAX_LISTED },
    ])
    .toArray()
    .catch((error: unknown) => {
      if (TOO_MANY_VALUES.has((error as { code?: unknown }).code)) return [];
      throw error;
    });
}

/** More different values than the database groups in memory. */
const TOO_MANY_VALUES = new Set<unknown>([146, 292]);

function shown(value: unknown): string {
  const text = JSON.stringify(value) ?? 'nothing';
  return text.length > MAX_SHOWN ? `${text.slice(0, MAX_SHOWN)}…` : text;
}
