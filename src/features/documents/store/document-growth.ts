import { calculateObjectSize, type Document } from 'bson';
import type { App } from '../../../app.js';
import { tooLarge, type AppError } from '../../../errors.js';

/** A document that is too large already, since it was imported, may still be marked. */
const SMALL_CHANGE_BYTES = 1024;

/**
 * What a document must meet so that a change does not let it grow beyond 2 MB; null where the database
 * looks at that itself, which costs it nothing. What the change sets and removes by whole fields makes room first.
 */
export function growthFilter(
  app: Pick<App, 'db' | 'config'>,
  set: Document,
  unset: readonly string[],
): Document | null {
  if (app.db.kind === 'embedded') return null;
  const most = app.config.documentMaxBytes;
  const added = calculateObjectSize(set);
  const fields = [...Object.keys(set), ...unset].filter((path) => !/[.$]/.test(path));
  const replaced = { $bsonSize: Object.fromEntries(fields.map((field) => [field, `$${field}`])) };
  const room = { $max: [0, { $subtract: [most, { $bsonSize: '$$ROOT' }] }] };
  const fits = { $lte: [{ $subtract: [added, replaced] }, room] };
  if (added > SMALL_CHANGE_BYTES) return { $expr: fits };
  return { $expr: { $or: [fits, { $gt: [{ $bsonSize: '$$ROOT' }, most] }] } };
}

export function grownTooLarge(): AppError {
  return tooLarge('DOCUMENT_TOO_LARGE', 'The document would grow beyond 2 MB');
}
