import { deserialize, EJSON, type Document, type ObjectId } from 'bson';
import type { IndexDescription } from 'mongodb';
import { conflict } from '../../errors.js';
import { isDuplicateKey, type Store } from '../../platform/database/database.js';

export interface CopyCounts {
  /** Documents that were missing there or different. */
  written: number;
  /** Documents that were there and are no longer here. */
  removed: number;
}

interface CopyOptions {
  stop: AbortSignal;
  /** Called with the number of documents seen so far. */
  onProgress: (seen: number) => void;
}

export const BATCH_DOCUMENTS = 500;
/** Below the 48 MB that one command may hold, with room for what is around the documents. */
export const COPY_BATCH_BYTES = 16 * 1024 * 1024;
const CANNOT_CREATE_INDEX = 67;
/** IndexOptionsConflict, IndexKeySpecsConflict: an index of an earlier run was declared otherwise. */
const INDEX_DIFFERS = new Set([85, 86]);

/**
 * Makes `to` hold the documents and indexes of `from`, writing only what differs: repeating it after an interruption
 * goes on. Every type of BSON is kept as it is.
 */
export async function copyCollection(
  from: Store<Document>,
  to: Store<Document>,
  { stop, onProgress }: CopyOptions,
): Promise<CopyCounts> {
  const counts: CopyCounts = { written: 0, removed: 0 };
  let seen = 0;
  for await (const batch of readBatches(from)) {
    stop.throwIfAborted();
    counts.written += await writeBatch(to, batch);
    onProgress((seen += batch.length));
  }
  // All of ours are there now: when the numbers agree there is nothing else.
  if ((await to.countDocuments({})) !== seen) counts.removed = await removeOthers(from, to, stop);
  await copyIndexes(from, to);
  return counts;
}

async function* readBatches(from: Store<Document>): AsyncGenerator<Buffer[]> {
  let batch: Buffer[] = [];
  let bytes = 0;
  for await (const raw of readRaw(from, {})) {
    if (batch.length >= BATCH_DOCUMENTS || (batch.length > 0 && bytes + raw.length > COPY_BATCH_BYTES)) {
      yield batch;
      batch = [];
      bytes = 0;
    }
    batch.push(raw);
    bytes += raw.length;
  }
  if (batch.length > 0) yield batch;
}

/** Documents in the order of their ids, as BSON. */
export function readRaw(store: Store<Document>, filter: Document): AsyncIterable<Buffer> {
  const found = store.find(filter, { raw: true }).sort({ _id: 1 }).batchSize(BATCH_DOCUMENTS);
  // With `raw` the driver hands out bytes, of which its types know nothing.
  return found as unknown as AsyncIterable<Buffer>;
}

/**
 * A document with every number, date and pattern in the class of its BSON type, so that it is stored as the same bytes
 * again.
 */
export function readExactly(raw: Buffer): Document {
  return deserialize(raw, { promoteValues: false, promoteLongs: false, bsonRegExp: true });
}

/** A text that is the same for the same id of whatever type. */
export function presentId(document: Document): string {
  return EJSON.stringify(document._id, { relaxed: false });
}

/** An id may be of any type; the driver's types know only its own. */
function readId(document: Document): ObjectId {
  return document._id as ObjectId;
}

async function writeBatch(to: Store<Document>, batch: Buffer[]): Promise<number> {
  const documents = batch.map(readExactly);
  const ids = documents.map(readId);
  const present = new Map<string, Buffer>();
  for await (const raw of readRaw(to, { _id: { $in: ids } })) present.set(presentId(readExactly(raw)), raw);
  const different = documents.filter((document, index) => {
    const there = present.get(presentId(document));
    return !there || Buffer.compare(there, batch[index]!) !== 0;
  });
  if (different.length === 0) return 0;
  try {
    await to.bulkWrite(
      different.map((document) =>
        present.has(presentId(document)) ? replacement(document) : { insertOne: { document } },
      ),
      { ordered: false },
    );
  } catch (error) {
    if (!isDuplicateKey(error)) throw error;
    // A value has passed from one document to another since an earlier run: indexes are made again once all documents
    // are there.
    await to.dropIndexes();
    await to.bulkWrite(different.map(replacement), { ordered: false });
  }
  return different.length;
}

function replacement(document: Document) {
  return { replaceOne: { filter: { _id: { $eq: readId(document) } }, replacement: document, upsert: true } };
}

async function removeOthers(from: Store<Document>, to: Store<Document>, stop: AbortSignal): Promise<number> {
  let removed = 0;
  for await (const batch of readBatches(to)) {
    stop.throwIfAborted();
    const ids = batch.map((raw) => readId(readExactly(raw)));
    const ours = new Set<string>();
    for await (const raw of readRaw(from, { _id: { $in: ids } })) ours.add(presentId(readExactly(raw)));
    const others = ids.filter((id) => !ours.has(presentId({ _id: id })));
    if (others.length > 0) removed += (await to.deleteMany({ _id: { $in: others } })).deletedCount;
  }
  return removed;
}

/** The indexes of a collection besides that of `_id`, without what a server notes of its own. */
export async function readIndexes(store: Store<Document>): Promise<(IndexDescription & { name: string })[]> {
  const indexes = await store.indexes();
  return indexes
    .filter(({ name }) => name !== '_id_')
    .map(
      ({ v: _v, ns: _ns, '2dsphereIndexVersion': _version, ...index }: Record<string, unknown>) =>
        // What `listIndexes` answers is what `createIndexes` takes, without these three.
        index as unknown as IndexDescription & { name: string },
    )
    .sort((a, b) => (a.name < b.name ? -1 : 1));
}

async function copyIndexes(from: Store<Document>, to: Store<Document>): Promise<void> {
  const wanted = await readIndexes(from);
  const names = new Set(wanted.map(({ name }) => name));
  if (wanted.length > 0) await createIndexes(to, wanted);
  else if ((await to.countDocuments({}, { limit: 1 })) === 0) return;
  for (const { name } of await readIndexes(to)) if (!names.has(name)) await to.dropIndex(name);
}

async function createIndexes(to: Store<Document>, wanted: IndexDescription[]): Promise<void> {
  try {
    await to.createIndexes(wanted).catch(async (error: unknown) => {
      if (!INDEX_DIFFERS.has(codeOf(error))) throw error;
      await to.dropIndexes();
      return to.createIndexes(wanted);
    });
  } catch (error) {
    if (codeOf(error) !== CANNOT_CREATE_INDEX) throw error;
    throw conflict(
      'INDEX_REFUSED',
      `MongoDB refuses an index of ${to.collectionName}: it must be version 6.0 or newer. Nothing was changed in the embedded store.`,
      { cause: error },
    );
  }
}

function codeOf(error: unknown): number {
  return (error as { code?: number }).code ?? 0;
}
