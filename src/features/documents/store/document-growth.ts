import { calculateObjectSize, type Document } from 'bson';
import type { App } from '../../../app.js';
import { tooLarge } from '../../../errors.js';

/** A document that is too large already, since it was imported, may still be marked. */
const SMALL_CHANGE_BYTES = 1024;

/**
 * What a document must meet so that a change does not let it grow beyond `BSVC_DOCUMENT_MAX`; null where the database
 * looks at that itself, which costs it nothing.
 */
export function growthFilter(app: Pick<App, 'db' | 'config'>, set: Document): Document | null {
  if (app.db.kind === 'embedded') return null;
  const most = app.config.documentMaxBytes;
  const added = calculateObjectSize(set);
  const fits = { $lte: [{ $bsonSize: '$$ROOT' }, most - added] };
  if (added > SMALL_CHANGE_BYTES) return { $expr: fits };
  return { $expr: { $or: [fits, { $gt: [{ $bsonSize: '$$ROOT' }, most] }] } };
}

export function grownTooLarge(): Error {
  return tooLarge('DOCUMENT_TOO_LARGE', 'The document would grow beyond the server’s BSVC_DOCUMENT_MAX');
}
