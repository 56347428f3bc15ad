import { ObjectId } from '../../codec/bson.js';
import type { Doc } from '../../codec/document.js';
import { invalidArgument } from './driver-errors.js';

/** The document's `_id`, made here when it has none and then also set on the caller's object, as the driver does. */
export function takeId(doc: Doc): unknown {
  doc['_id'] ??= new ObjectId();
  return doc['_id'];
}

/** Refuses, as the driver does, an update that would replace its document. */
export function requireOperators(update: unknown): void {
  if (Array.isArray(update)) {
    if (update.length > 0) return;
  } else if (Object.keys(update as object)[0]?.startsWith('$') === true) {
    return;
  }
  throw invalidArgument('Update document requires atomic operators');
}

/** Refuses, as the driver does, a replacement that is an update. */
export function refuseOperators(replacement: unknown): void {
  if (Object.keys(replacement as object)[0]?.startsWith('$') === true) {
    throw invalidArgument('Replacement document must not contain atomic operators');
  }
}
