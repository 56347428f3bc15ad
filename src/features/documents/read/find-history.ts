import type { App } from '../../../app.js';
import type { HistoryChange } from '../../changes/change-log.js';
import { openChangeLog } from '../../changes/open-change-log.js';
import type { Collection } from '../../collections/collection.js';
import { decodeStored } from '../reply/encode-document.js';
import { presentDocument, type PresentedDocument } from '../reply/present-document.js';
import { visibleDocuments } from '../store/document.js';
import { documentStore } from '../store/document-store.js';
import { documentNotFound, requireDocumentId } from '../write/write-target.js';

/** Entries of the log that one request looks at, of whatever document. */
const MAX_ENTRIES = 50_000;

export interface ShownChange {
  at: string;
  change: HistoryChange['change'];
  /** What the log has kept of the document before; null where it has nothing. */
  before: PresentedDocument | null;
  /** Fields may be missing from `before`. */
  isPartial: boolean;
}

export interface ShownHistory {
  /** False where the log has not begun. */
  isKept: boolean;
  /** The moment of the oldest change of the collection that is kept; null when there is none. */
  since: string | null;
  items: ShownChange[];
  next: number | null;
}

/**
 * What the change log of a collection has of a document, the newest change first, for operators: they see what the
 * secret key sees. Begins no log. 404 DOCUMENT_NOT_FOUND for a document that is not there, in the trash neither.
 */
export async function findHistory(
  app: App,
  collection: Collection,
  idText: string,
  { before, limit }: { before: number | null; limit: number },
): Promise<ShownHistory> {
  const id = requireDocumentId(idText);
  const wanted = { _id: id, ...visibleDocuments(true) };
  const found = await documentStore(app, collection).findOne(wanted, { projection: { _id: 1 } });
  if (!found) throw documentNotFound();
  const log = openChangeLog(app, collection);
  const size = await log.size();
  const history = size && (await log.history({ id, before, limit, maxEntries: MAX_ENTRIES }));
  if (!size || !history) return { isKept: false, since: null, items: [], next: null };
  const items = history.changes.map(({ at, change, earlier }) => ({
    at: at.toISOString(),
    change,
    before: earlier && presentDocument(decodeStored(earlier.bytes)),
    isPartial: earlier?.isPartial ?? false,
  }));
  return { isKept: true, since: size.since?.toISOString() ?? null, items, next: history.next };
}
