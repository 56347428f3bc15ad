import type { App } from '../../app.js';
import { readFilter } from '../access/access-rules.js';
import type { Caller } from '../access/caller.js';
import { peekCollection, requireCollection } from '../collections/collection-store.js';
import { visibleDocuments } from './document.js';
import { documentStore } from './document-store.js';
import { parseGetQuery } from './parse-list-query.js';
import { encodeOne } from './stored-documents.js';
import { projectionOf } from './select-fields.js';
import { documentNotFound, requireDocumentId } from './write-place.js';

/** The JSON of one document (rest-api.md 4.2), as `latin1` text. 404 when there is none, when it is trashed and not asked for, and when it is another user's in a private collection. */
export async function getDocument(
  app: App,
  caller: Caller,
  collectionName: string,
  idText: string,
  rawQuery: string,
): Promise<string> {
  const projectId = caller.project._id;
  const collection =
    peekCollection(app, projectId, collectionName) ?? (await requireCollection(app, projectId, collectionName));
  const readable = readFilter(collection, caller);
  const wanted = { _id: requireDocumentId(idText) };
  const query = parseGetQuery(rawQuery, collection);
  const shown = query.fields && [...query.fields, ...query.populate.map(({ path }) => path)];
  const visible = visibleDocuments(query.includeDeleted);
  const found = (await documentStore(app, collection).findOne(
    { $and: readable ? [readable, wanted, visible] : [wanted, visible] },
    shown ? { raw: true, projection: projectionOf(shown) } : RAW,
  )) as Buffer | null;
  if (!found) throw documentNotFound();
  return encodeOne(app, caller, found, query);
}

const RAW = { raw: true };
