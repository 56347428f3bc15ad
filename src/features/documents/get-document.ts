import type { App } from '../../app.js';
import { readFilter } from '../access/access-rules.js';
import type { Caller } from '../access/caller.js';
import { requireCollection } from '../collections/collection-store.js';
import { visibleDocuments } from './document.js';
import { documentStore } from './document-store.js';
import { presentDocument, type PresentedDocument } from './present-document.js';
import { documentNotFound, requireDocumentId } from './write-place.js';

export interface GetOptions {
  includeDeleted: boolean;
  /** false leaves out the system fields. */
  meta: boolean;
}

/** One document (rest-api.md 4.2). 404 when there is none, when it is trashed and not asked for, and when it is another user's in a private collection. */
export async function getDocument(
  app: App,
  caller: Caller,
  collectionName: string,
  idText: string,
  options: GetOptions,
): Promise<PresentedDocument> {
  const collection = await requireCollection(app, caller.project._id, collectionName);
  const readable = readFilter(collection, caller);
  const wanted = { _id: requireDocumentId(idText), ...visibleDocuments(options.includeDeleted) };
  const found = await documentStore(app, collection).findOne(readable ? { $and: [readable, wanted] } : wanted);
  if (!found) throw documentNotFound();
  return presentDocument(found, options.meta);
}
