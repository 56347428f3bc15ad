import type { App } from '../../../app.js';
import { readFilter } from '../../access/access-rules.js';
import type { Caller } from '../../access/caller.js';
import { peekCollection, requireCollection } from '../../collections/collection-store.js';
import { visibleDocuments } from '../store/document.js';
import { documentStore } from '../store/document-store.js';
import { matchShown } from '../store/shown-documents.js';
import { parseGetQuery } from '../query/parse-list-query.js';
import { encodeStoredJson, encodeInParts } from '../reply/encode-document.js';
import { readWithin, SMALL_REPLY_BYTES } from '../reply/reply-size.js';
import { encodeOne, type EncodedReply } from './stored-documents.js';
import { projectionOf } from '../reply/select-fields.js';
import { documentNotFound, requireDocumentId } from '../write/write-target.js';

/**
 * The JSON of one document (rest-api.md 4.2). 503 BUSY for a large one when too many large replies are under way. 404
 * when there is none, when it is trashed and not asked for, and when it is another user's in a private collection.
 */
export async function getDocument(
  app: App,
  caller: Caller,
  collectionName: string,
  idText: string,
  rawQuery: string,
): Promise<EncodedReply> {
  const projectId = caller.project._id;
  const collection =
    peekCollection(app, projectId, collectionName) ?? (await requireCollection(app, projectId, collectionName));
  const reading = readFilter(app, collection, caller);
  const active = reading instanceof Promise ? await reading : reading;
  const wanted = { _id: requireDocumentId(idText) };
  const query = parseGetQuery(rawQuery, collection);
  const readable = query.includeDeleted ? await readFilter(app, collection, caller, true) : active;
  const shown = query.fields && [...query.fields, ...query.populate.map(({ path }) => path)];
  const visible = visibleDocuments(query.includeDeleted);
  const options = shown ? { raw: true, projection: projectionOf(shown) } : RAW;
  const find = async (): Promise<Buffer> => {
    const found = await matchShown(
      app,
      collection,
      (inBatch) =>
        documentStore(app, collection).findOne(
          { $and: readable ? [readable, { ...wanted, ...inBatch }, visible] : [{ ...wanted, ...inBatch }, visible] },
          options,
        ) as Promise<Buffer | null>,
    );
    if (!found) throw documentNotFound();
    return found;
  };
  let found: Buffer | null = await find();
  const plain = query.populate.length === 0;
  if (plain && found.length <= SMALL_REPLY_BYTES) return encodeStoredJson(found, query.meta);
  return readWithin(app.replies, projectId, async (size) => {
    const row = found ?? (await find());
    // Not held while it waits for room.
    found = null;
    size.add(row.length);
    return plain
      ? { parts: encodeInParts([row], query.meta, { isArray: false }), release: () => size.release() }
      : encodeOne(app, caller, row, query, size);
  });
}

const RAW = { raw: true };
