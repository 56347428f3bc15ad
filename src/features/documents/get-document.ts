import type { App } from '../../app.js';
import { readFilter } from '../access/access-rules.js';
import type { Caller } from '../access/caller.js';
import { requireCollection } from '../collections/collection-store.js';
import { visibleDocuments } from './document.js';
import { documentStore } from './document-store.js';
import { parseGetQuery } from './parse-list-query.js';
import { populateDocuments } from './populate-documents.js';
import { presentDocument, type PresentedDocument } from './present-document.js';
import { projectionOf } from './select-fields.js';
import { documentNotFound, requireDocumentId } from './write-place.js';

/** One document (rest-api.md 4.2). 404 when there is none, when it is trashed and not asked for, and when it is another user's in a private collection. */
export async function getDocument(
  app: App,
  caller: Caller,
  collectionName: string,
  idText: string,
  rawQuery: string,
): Promise<PresentedDocument> {
  const collection = await requireCollection(app, caller.project._id, collectionName);
  const readable = readFilter(collection, caller);
  const wanted = { _id: requireDocumentId(idText) };
  const query = parseGetQuery(rawQuery, collection);
  const shown = query.fields && [...query.fields, ...query.populate.map(({ path }) => path)];
  const found = await documentStore(app, collection).findOne(
    { $and: [...(readable ? [readable] : []), wanted, visibleDocuments(query.includeDeleted)] },
    shown ? { projection: projectionOf(shown) } : {},
  );
  if (!found) throw documentNotFound();
  const document = presentDocument(found, query.meta);
  await populateDocuments(app, caller, [document], query);
  return document;
}
