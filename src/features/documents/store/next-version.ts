import type { App } from '../../../app.js';
import { versionTime } from '../../../platform/time/clock.js';
import type { Collection } from '../../collections/collection.js';
import { foldChanged } from '../../collections/fields/nocase.js';
import type { StoredDocument } from './document.js';

/** The changed document, a copy that is given away, as it is stored: with a later time. */
export function nextVersion(
  { clock }: App,
  collection: Collection,
  stored: StoredDocument,
  changed: StoredDocument,
): StoredDocument {
  const next = changed === stored ? { ...stored } : changed;
  next.updatedAt = versionTime(stored, clock.now());
  return foldChanged(collection, stored, next);
}
