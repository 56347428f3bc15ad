import { serialize, type Document } from 'bson';
import type { App } from '../../../app.js';
import { unavailable } from '../../../errors.js';
import { loadMatchers } from '../../../platform/database/database.js';
import { findSight, readFilter, requireReader, type AccessFilter, type ReadScope } from '../../access/access-rules.js';
import { type Caller, tenantOfCaller } from '../../access/caller.js';
import { heldBy, standIn, storedPath } from '../../access/rules/pins.js';
import type { Collection } from '../../collections/collection.js';
import { requireCollection } from '../../collections/collection-store.js';
import { rulesOf } from '../../collections/rules/collection-rules.js';
import { documentPaths } from '../../collections/rules/rule.js';
import { visibleDocuments } from '../store/document.js';
import { documentStore } from '../store/document-store.js';
import { parseGetQuery } from '../query/parse-list-query.js';
import { encodeStoredJson, encodeInParts } from '../reply/encode-document.js';
import { readWithin, SMALL_REPLY_BYTES } from '../reply/reply-size.js';
import { encodeOne, type EncodedReply } from './stored-documents.js';
import { projectionOf } from '../reply/select-fields.js';
import { concealInRow, requireReadableNames } from '../reply/conceal-fields.js';
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
  const collection = await requireCollection(app, projectId, collectionName);
  requireReader(collection, caller);
  const wanted = { _id: requireDocumentId(idText) };
  const query = parseGetQuery(rawQuery, collection);
  const seeing = findSight(app, collection, caller);
  const sight = seeing instanceof Promise ? await seeing : seeing;
  requireReadableNames(sight, query);
  const scope = { trash: query.includeDeleted };
  const shown = query.fields && [...query.fields, ...query.populate.map(({ path }) => path)];
  const visible = visibleDocuments(query.includeDeleted);
  const options = shown ? { raw: true, projection: projectionOf(shown) } : RAW;
  const findWith = (access: readonly Document[]): Promise<Buffer | null> =>
    documentStore(app, collection).findOne({ $and: [...access, wanted, visible] }, options) as Promise<Buffer | null>;
  const find = async (): Promise<Buffer> => {
    const found = asksSets(collection, caller)
      ? await findSettled(app, collection, caller, { ...wanted, ...visible }, scope, findWith)
      : await findReadable(await readFilter(app, collection, caller, scope), findWith);
    if (!found) throw documentNotFound();
    return concealInRow(found, shown ? null : sight);
  };
  let found: Buffer | null = await find();
  const plain = query.populate.length === 0;
  if (plain && found.length <= SMALL_REPLY_BYTES) return encodeStoredJson(found, query.meta);
  return readWithin(app.replies, tenantOfCaller(caller), async (size) => {
    const row = found ?? (await find());
    // Not held while it waits for room.
    found = null;
    size.add(row.length);
    return plain
      ? { parts: encodeInParts([row], query.meta, { isArray: false }), release: () => size.release() }
      : encodeOne(app, caller, { collection, row }, query, size);
  });
}

const RAW = { raw: true };

type FindWith = (access: readonly Document[]) => Promise<Buffer | null>;

function findReadable(readable: AccessFilter, findWith: FindWith): Promise<Buffer | null> {
  return findWith(readable ? [readable] : []);
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
async function findSettled(
  app: App,
  collection: Collection,
  caller: Caller,
  wanted: Document,
  scope: ReadScope,
  findWith: FindWith,
): Promise<Buffer | null> {
  const { read, delete: remove } = rulesOf(collection);
  const rules = scope.trash ? [read, remove] : [read];
  const paths = [...new Set(rules.flatMap(({ singlePaths }) => singlePaths))];
  const openMatcher = await loadMatchers();
  const named = ['_id', 'isDeleted', ...documentPaths(rules).map(storedPath)];
  const projection = Object.fromEntries(named.map((path) => [path, 1]));
  for (let attempt = 0; attempt < MAX_ATTEMPTS; attempt++) {
    const stored = await documentStore(app, collection).findOne(wanted, { ...app.db.confirmedReads, projection });
    const held = stored ?? standIn(paths);
    const conditions = heldBy(held, paths);
    const readable = await readFilter(app, collection, caller, { ...scope, conditions: () => conditions });
    const filter = readable ?? {};
    const isReadable = openMatcher(filter).matches(Buffer.from(serialize(held)));
    const found = await findWith([filter, ...conditions]);
    if (found || !stored || !isReadable) return found;
  }
  throw unavailable('BUSY', 'The document is being changed by others: try again', { retryAfterSeconds: 1 });
}
