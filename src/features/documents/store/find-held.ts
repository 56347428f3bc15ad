import type { Document } from 'bson';
import type { App } from '../../../app.js';
import { storedPath } from '../../access/rules/pins.js';
import { documentsName, type Collection } from '../../collections/collection.js';
import type { StoredDocument } from './document.js';
import type { RecordWrite } from './record-update.js';

/** What the document that meets a filter holds at the paths that rules name; null when there is none. */
export function findHeld(
  app: App,
  collection: Collection,
  filter: Document,
  paths: readonly string[],
): Promise<Document | null> {
  const projection = Object.fromEntries(['_id', ...paths.map(storedPath)].map((path) => [path, 1]));
  return app.db.collection(documentsName(collection)).findOne(filter, { ...app.db.confirmedReads, projection });
}

/** A document as the writes of a batch so far leave it. */
export interface Image {
  document: StoredDocument;
  /** The batch itself stores it. */
  isNew: boolean;
  /** False where one of them is refused. */
  isExact: boolean;
}

/** The image of a document that a batch stores, after its later writes. */
export function imageOfNew(insert: StoredDocument, later: readonly RecordWrite[]): Image {
  return { ...changed(insert, later), isNew: true };
}

function changed(base: StoredDocument, writes: readonly RecordWrite[]): Pick<Image, 'document' | 'isExact'> {
  let document = base;
  let isExact = true;
  for (const write of writes) {
    if (!('update' in write)) continue;
    try {
      document = write.update.apply(document);
    } catch {
      // The write itself is refused for it.
      isExact = false;
    }
  }
  return { document, isExact };
}

/** The object with another value at a path, or none for undefined; null where a list or a value is on the way. */
export function withValueAt(holder: unknown, [part, ...rest]: readonly string[], value: unknown): object | null {
  if (!isPlainObject(holder)) return null;
  const { [part!]: held, ...others } = holder;
  if (rest.length === 0) return value === undefined ? others : { ...holder, [part!]: value };
  if (held === undefined && value === undefined) return holder;
  const inner = withValueAt(held === undefined ? {} : held, rest, value);
  return inner && { ...holder, [part!]: inner };
}

/** No list, no date, no id. */
function isPlainObject(value: unknown): value is Record<string, unknown> {
  if (typeof value !== 'object' || value === null) return false;
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === Object.prototype || prototype === null;
}
