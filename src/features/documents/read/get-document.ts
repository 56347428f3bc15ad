import { serialize, type Document, type ObjectId } from 'bson';
import type { FindOptions } from 'mongodb';
import type { App } from '../../../app.js';
import { unavailable } from '../../../errors.js';
import { loadMatchers } from '../../../platform/database/database.js';
import {
  findVisibility,
  peekFilter,
  readFilter,
  requireReader,
  seesAll,
  type AccessFilter,
} from '../../access/access-rules.js';
import { type Caller, tenantOfCaller } from '../../access/caller.js';
import { preconditionsOf, placeholderDocument, storedPath } from '../../access/rules/bound-values.js';
import { documentsName, type Collection } from '../../collections/collection.js';
import { peekCollection, requireCollection } from '../../collections/collection-store.js';
import { rulesOf } from '../../collections/rules/collection-rules.js';
import { documentPaths } from '../../collections/rules/rule.js';
import { visibleDocuments } from '../store/document.js';
import { documentStore } from '../store/document-store.js';
import { parseGetQuery } from '../query/parse-list-query.js';
import { encodeInParts, writeDocument } from '../reply/encode-document.js';
import { readWithin, SMALL_REPLY_BYTES } from '../reply/reply-size.js';
import { type EncodedReply, copiedBy } from '../reply/encoded-reply.js';
import { encodeOne } from './stored-documents.js';
import { projectionOf } from '../reply/select-fields.js';
import { redactRow, requireReadableNames } from '../reply/redact-fields.js';
import { documentNotFound, requireDocumentId } from '../write/write-target.js';

/**
 * getDocument for what is asked for most: all of a small document, of which nothing has to be found out first.
 * Undefined for everything else.
 */
export function getDocumentNow(
  app: App,
  caller: Caller,
  collectionName: string,
  idText: string,
  rawQuery: string,
  copies?: string,
): EncodedReply | undefined {
  const collection = peekCollection(app, caller.project._id, collectionName);
  if (!collection || rawQuery !== '' || !seesAll(collection, caller)) return undefined;
  const access = peekFilter(collection, caller);
  if (access === undefined) return undefined;
  const document = { _id: requireDocumentId(idText), ...visibleDocuments() };
  const row = app.db.findPoint(documentsName(collection), access ? { $and: [access, document] } : document);
  if (row === null) throw documentNotFound();
  return row && row.length <= SMALL_REPLY_BYTES
    ? { write: (out) => (writeDocument(out, row, true), ''), isCopied: copiedBy(copies) }
    : undefined;
}

/**
 * The JSON of one document (rest-api.md 4.2). 503 BUSY for a large one when too many large replies are under way. 404
 * when there is none, when it is trashed and not asked for, and when it is another user's in a private collection.
 * `copies` is the client's `If-None-Match`.
 */
export async function getDocument(
  app: App,
  caller: Caller,
  collectionName: string,
  idText: string,
  rawQuery: string,
  copies?: string,
): Promise<EncodedReply> {
  const collection = await requireCollection(app, caller.project._id, collectionName);
  requireReader(collection, caller);
  const id = requireDocumentId(idText);
  const query = parseGetQuery(rawQuery, collection);
  const visibility = await findVisibility(app, collection, caller);
  requireReadableNames(visibility, query);
  const shown = query.fields && [...query.fields, ...query.populate.map(({ path }) => path)];
  const options = shown ? { raw: true, projection: projectionOf(shown) } : RAW;
  const wanted: Wanted = { collection, caller, id, trash: query.includeDeleted, options };
  let found = await findRow(app, wanted);
  if (!found) throw documentNotFound();
  const plain = query.populate.length === 0;
  if (plain && found.length <= SMALL_REPLY_BYTES) {
    const row = redactRow(found, shown ? null : visibility);
    // What is shown may change with the caller's rights alone, what is populated with other documents: no copy is good.
    return {
      write: (out) => (writeDocument(out, row, query.meta), ''),
      isCopied: shown || !visibility ? copiedBy(copies) : undefined,
    };
  }
  return readWithin(app.replies, tenantOfCaller(caller), async (size) => {
    const whole = found ?? (await findRow(app, wanted));
    // Not held while it waits for room.
    found = null;
    if (!whole) throw documentNotFound();
    const row = redactRow(whole, shown ? null : visibility);
    size.add(row.length);
    return plain
      ? { parts: encodeInParts([row], query.meta, { isArray: false }), release: () => size.release() }
      : encodeOne(app, caller, { collection, row }, query, size);
  });
}

const RAW = { raw: true };

/** The requested document. */
interface Wanted {
  collection: Collection;
  caller: Caller;
  id: ObjectId;
  trash: boolean;
  options: FindOptions;
}

/** The stored bytes of what the caller may read of it; null where there is nothing. */
async function findRow(app: App, wanted: Wanted): Promise<Buffer | null> {
  const { collection, caller, trash } = wanted;
  if (asksSets(collection, caller)) return findSettled(app, wanted);
  return findWith(app, wanted, await readFilter(app, collection, caller, { trash }));
}

function findWith(
  app: App,
  { collection, id, trash, options }: Wanted,
  access: AccessFilter,
  conditions: readonly Document[] = [],
): Promise<Buffer | null> {
  const document = { _id: id, ...visibleDocuments(trash) };
  const filter = access || conditions.length > 0 ? { $and: [access ?? {}, ...conditions, document] } : document;
  return documentStore(app, collection).findOne(filter, options) as Promise<Buffer | null>;
}

function asksSets(collection: Collection, { key }: Caller): boolean {
  return key.type !== 'secret' && rulesOf(collection).read.sets.length > 0;
}

const MAX_ATTEMPTS = 5;

/**
 * Sets are asked about what the document holds, as long as it holds that: null only where it was not readable, or not
 * there, at one moment. As much is done for a document that is not there as for one that is not readable. 503 BUSY
 * where others came between five times.
 */
async function findSettled(app: App, wanted: Wanted): Promise<Buffer | null> {
  const { collection, caller, id, trash } = wanted;
  const { read, delete: remove } = rulesOf(collection);
  const rules = trash ? [read, remove] : [read];
  const paths = [...new Set(rules.flatMap(({ singlePaths }) => singlePaths))];
  const openMatcher = await loadMatchers();
  const named = ['_id', 'isDeleted', ...documentPaths(rules).map(storedPath)];
  const projection = Object.fromEntries(named.map((path) => [path, 1]));
  for (let attempt = 0; attempt < MAX_ATTEMPTS; attempt++) {
    const document = { _id: id, ...visibleDocuments(trash) };
    const stored = await documentStore(app, collection).findOne(document, { ...app.db.confirmedReads, projection });
    const held = stored ?? placeholderDocument(paths);
    const conditions = preconditionsOf(held, paths);
    const readable = await readFilter(app, collection, caller, { trash, conditions: () => conditions });
    const isReadable = openMatcher(readable ?? {}).matches(Buffer.from(serialize(held)));
    const found = await findWith(app, wanted, readable, conditions);
    if (found || !stored || !isReadable) return found;
  }
  throw unavailable('BUSY', 'The document is being changed by others: try again', { retryAfterSeconds: 1 });
}
