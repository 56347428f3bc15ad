import type { Document } from 'bson';
import type { IndexDescription } from 'mongodb';
import type { App } from '../../../app.js';
import { conflict, type AppError } from '../../../errors.js';
import { documentsName, type Collection } from '../collection.js';
import { takeTurns } from '../../../scheduler.js';
import { comparedValue, namedPath, nocaseFields } from '../fields/nocase.js';
import { documentIndexes } from './document-indexes.js';

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
  const index = documentIndexes(collection).find(
    ({ key, unique }) => unique === true && Object.keys(key).join() === fields.join(),
  );
  const shared = await listShared(app, collection, fields, conditionOf(index));
  // Items of arrays count one by one, but are listed as arrays.
  const found = shared.length > 0 ? shared : [{ _id: fields.map((name) => cause.keyValue?.[name]), count: null }];
  return notUnique(fields, found, cause);
}

/**
 * The same 409 before an index on these stored paths is built; values in arrays are not looked at. Changes nothing:
 * folded values that are not kept yet are made on the way.
 */
export async function requireUnique(
  app: Pick<App, 'db'>,
  current: Collection,
  changed: Collection,
  index: Pick<IndexDescription, 'key' | 'partialFilterExpression'>,
): Promise<void> {
  const fields = Object.keys(index.key);
  const where = conditionOf(index);
  const kept = nocaseFields(current);
  const isKept = fields.every((path) => namedPath(path) === path || kept.includes(namedPath(path)));
  const shared = await (isKept ? listShared : listFoldedShared)(app, changed, fields, where);
  if (shared.length > 0) throw notUnique(fields, shared);
}

function notUnique(fields: string[], shared: { _id: unknown; count: number | null }[], cause?: unknown): AppError {
  const field = fields.map(namedPath).join(' and ') || 'a field';
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

/** What a unique index asks of documents beside having its fields. */
function conditionOf(index: Pick<IndexDescription, 'partialFilterExpression'> | undefined): Document {
  const asked = Object.entries(index?.partialFilterExpression ?? {});
  return Object.fromEntries(asked.filter(([, value]) => typeof value !== 'object'));
}

function listShared(
  app: Pick<App, 'db'>,
  collection: Collection,
  fields: readonly string[],
  where: Document,
): Promise<SharedValue[]> {
  const present = Object.fromEntries(fields.map((field) => [field, { $exists: true }]));
  return app.db
    .collection(documentsName(collection))
    .aggregate<SharedValue>([
      { $match: { isDeleted: false, ...present, ...where } },
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

async function listFoldedShared(
  app: Pick<App, 'db'>,
  collection: Collection,
  paths: readonly string[],
  where: Document,
): Promise<SharedValue[]> {
  const names = paths.map(namedPath);
  const present = Object.fromEntries(names.map((name) => [name, { $exists: true }]));
  const stored = app.db
    .collection<Document>(documentsName(collection))
    .find({ isDeleted: false, ...present, ...where })
    .project(Object.fromEntries(names.map((name) => [name, 1])));
  const counts = new Map<string, number>();
  const turn = takeTurns();
  for await (const document of stored) {
    await turn();
    const values = names.map((name) => comparedValue(collection, name, document[name]));
    const text = JSON.stringify(values);
    counts.set(text, (counts.get(text) ?? 0) + 1);
  }
  return [...counts]
    .filter(([, count]) => count > 1)
    .sort(([, a], [, b]) => b - a)
    .slice(0, MAX_LISTED)
    .map(([text, count]) => ({ _id: JSON.parse(text) as unknown, count }));
}

/** More different values than the database groups in memory. */
const TOO_MANY_VALUES = new Set<unknown>([146, 292]);

function shown(value: unknown): string {
  const text = JSON.stringify(value) ?? 'nothing';
  return text.length > MAX_SHOWN ? `${text.slice(0, MAX_SHOWN)}…` : text;
}
