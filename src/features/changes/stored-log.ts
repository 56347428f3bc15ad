import { setTimeout as wait } from 'node:timers/promises';
import { ObjectId, calculateObjectSize, serialize, type Document, deserialize } from 'bson';
import type { App } from '../../app.js';
import {
  isDuplicateKey,
  loadMatchers,
  type Store,
  unlessDuplicate,
  type WrittenStep,
} from '../../platform/database/database.js';
import { documentsName, type Collection } from '../collections/collection.js';
import { readingFields } from '../collections/rules/log-settings.js';
import type {
  ChangeLog,
  EarlierDocument,
  FoundChange,
  Logged,
  LogPosition,
  LogSize,
  WatchedChange,
  WatchedChanges,
} from './change-log.js';

export const CHANGE_LOG = 'change_log';

/**
 * An entry of a log. The transaction of a change stores it without a number: writers that wanted the next one would
 * wait for each other. Readers number what waits before they look; numbers of a collection are contiguous, so a reader
 * of a prefix has missed nothing. Number 0 begins the log and names its epoch.
 */
interface LogEntry {
  /** The id of the event; of number 0 that of the collection. */
  _id: string;
  c: ObjectId;
  n: number;
  /** The collection of an entry that has no number yet, and no `c`. */
  waiting?: ObjectId;
  at: Date;
  epoch?: string;
  documentId?: unknown;
  /** The owner when the entry was made: who may receive the deletion. */
  owner?: unknown;
  /** What the fields of the rule `read` held before the change, none before an insert; absent = unknown. */
  earlier?: Record<string, unknown>[];
}

type Database = Pick<App, 'db'>;

function logStore(app: Database): Store<LogEntry> {
  return app.db.collection<LogEntry>(CHANGE_LOG);
}

/** Other processes notice a changed collection within this. */
const NOTICED_MS = 1_000;
const ATTEMPTS = 100;
const BATCH = 1_000;
/** Batch size, in documents. */
const CHUNK = 64;
/** More of a document before its change is not kept. */
const MAX_EARLIER_BYTES = 4 * 1024;

/** The entry of a change, but its id, as the change's own transaction stores it. */
export function waitingEntry(
  collection: Pick<Collection, '_id' | 'rls' | 'rules'>,
  at: Date,
  { before, after }: WrittenStep,
): Omit<LogEntry, '_id' | 'c' | 'n'> {
  const { _id: waiting, rls } = collection;
  const document = (after ?? before)!;
  const names = readingFields(collection);
  const held = before && Object.fromEntries(names.map((name) => [name, (before[name] ?? null) as unknown]));
  const isKnown = names.length > 0 && (!held || calculateObjectSize(held) <= MAX_EARLIER_BYTES);
  return {
    ...{ waiting, at, documentId: document._id },
    ...(rls && { owner: document[rls.ownerField] }),
    ...(isKnown && { earlier: held ? [held] : [] }),
  };
}

/** The filter of the entries of a collection with numbers from `from`, and below `to`. */
function numbers(c: ObjectId, from: number, to = Number.MAX_SAFE_INTEGER): Document {
  return { c, n: { $gte: from, $lt: to } };
}

function findLast(app: Database, c: ObjectId): Promise<LogEntry | null> {
  return logStore(app).findOne(numbers(c, 0), { ...app.db.confirmedReads, sort: { n: -1 } });
}

/**
 * Gives the entries that wait at this moment the next numbers. Of two who do so at once one is refused the number that
 * both want, and looks again: as each has read the last number before it has read what waits, an entry that it finds
 * numbered by then has one of those that follow, and none is left out.
 */
export async function numberEntries(app: Database, c: ObjectId): Promise<void> {
  for (let attempt = 0; ;) {
    const waiting = { waiting: c };
    if (!(await logStore(app).findOne(waiting, { ...app.db.confirmedReads, projection: { _id: 1 } }))) return;
    const { seq } = await beginLog(app, c);
    const found = await logStore(app)
      .find(waiting, app.db.confirmedReads)
      .sort({ at: 1, _id: 1 })
      .limit(BATCH)
      .project<Pick<LogEntry, '_id'>>({ _id: 1 })
      .toArray();
    const updates = found.map(({ _id }, at) => {
      const update = { $set: { c, n: seq + 1 + at }, $unset: { waiting: '' as const } };
      return { updateOne: { filter: { _id, waiting: c }, update } };
    });
    try {
      if (updates.length > 0) await logStore(app).bulkWrite(updates, { ordered: true });
    } catch (error) {
      if (!isDuplicateKey(error) || ++attempt === ATTEMPTS) throw error;
    }
  }
}

async function beginLog(app: Database, c: ObjectId): Promise<LogPosition> {
  for (;;) {
    const head = await logStore(app).findOne(numbers(c, 0, 1), app.db.confirmedReads);
    const last = head && (await findLast(app, c));
    if (last) return { epoch: head.epoch!, seq: last.n };
    const first = { _id: c.toHexString(), c, n: 0, at: new Date(), epoch: new ObjectId().toHexString() };
    await unlessDuplicate(logStore(app).insertOne(first));
  }
}

/** As beginLog, but not before every process notices that changes are to be kept, and writes their events. */
async function beginHeard(app: Database, c: ObjectId): Promise<LogPosition> {
  await beginLog(app, c);
  const head = await logStore(app).findOne(numbers(c, 0, 1));
  const age = head ? Date.now() - head.at.getTime() : NOTICED_MS;
  if (age >= 0 && age < NOTICED_MS) await wait(NOTICED_MS - age);
  await numberEntries(app, c);
  return beginLog(app, c);
}

/**
 * The extent of a log: its entries are numbered without gaps, and each has the size of an average entry of all logs.
 * Null where none was begun.
 */
async function measureStoredLog(
  app: Database,
  c: ObjectId,
): Promise<(LogSize & { entries: number; last: number }) | null> {
  const last = await findLast(app, c);
  if (!last) return null;
  const oldest = await logStore(app).findOne(numbers(c, 1), { sort: { n: 1 } });
  if (!oldest) return { bytes: 0, since: null, entries: 0, last: last.n };
  const entries = last.n - oldest.n + 1;
  const all = await app.db.measure(CHANGE_LOG);
  const bytes = Math.ceil((entries * all.bytes) / Math.max(1, all.documents));
  return { bytes, since: oldest.at, entries, last: last.n };
}

/** Removes a log with all its entries. */
export async function removeLog(app: Database, c: ObjectId): Promise<void> {
  await logStore(app).deleteMany(numbers(c, 0));
  await logStore(app).deleteMany({ waiting: c });
}

/** The collections that have a log, or entries that wait for one. */
export async function listLogged(app: Database): Promise<ObjectId[]> {
  const held = logStore(app)
    .find({ $or: [{ n: 0 }, { waiting: { $exists: true } }] })
    .project<Partial<Pick<LogEntry, 'c' | 'waiting'>>>({ c: 1, waiting: 1 });
  const found = new Map<string, ObjectId>();
  for await (const { c = null, waiting = c } of held) found.set(waiting!.toHexString(), waiting!);
  return [...found.values()];
}

/**
 * The log of a MongoDB, whose entries are stored by the transactions of the changes. It knows nothing of writes that
 * others than the service make.
 */
export function openStoredLog(app: Database, collection: Logged): ChangeLog {
  const c = collection._id;
  return {
    begin: () => beginHeard(app, c),
    async read(search) {
      await numberEntries(app, c);
      const entries = await findEntries(app, c, search);
      if (!entries) return null;
      const { changes, ...end } = await readEntries(app, collection, entries, search.filter, search);
      const { readable } = search;
      const wasShown = readable ? await openEarlier(collection, readable) : () => true;
      const concerned: FoundChange[] = [];
      for (const change of changes) {
        const { id, at, document } = change;
        const concerns = document !== null || wasShown(change);
        if (concerns === null) return null;
        if (concerns) concerned.push({ id, at, document });
      }
      return { ...end, changes: concerned };
    },
    async watch(search) {
      await numberEntries(app, c);
      const entries = await findEntries(app, c, search);
      return entries && readEntries(app, collection, entries, search.visible, search);
    },
    async history({ id, before, limit, maxEntries }) {
      await numberEntries(app, c);
      const last = await findLast(app, c);
      if (!last) return null;
      const to = Math.min(before ?? Infinity, last.n + 1);
      const from = Math.max(1, to - maxEntries);
      const entries = await logStore(app)
        .find({ ...numbers(c, from, to), documentId: id }, app.db.confirmedReads)
        .sort({ n: -1 })
        .limit(limit)
        .toArray();
      const changes = entries.map((entry) => {
        const earlier = earlierOf(collection, entry)?.at(-1) ?? null;
        return { at: entry.at, change: 'changed' as const, earlier };
      });
      const oldest = entries.length === limit ? entries.at(-1)!.n : from;
      return { changes, next: oldest > 1 ? oldest : null };
    },
    end: () => removeLog(app, c),
    async size() {
      await numberEntries(app, c);
      return measureStoredLog(app, c);
    },
    async trim(since, maxBytes) {
      const size = await measureStoredLog(app, c);
      if (!size) return;
      const kept = size.bytes <= maxBytes ? Infinity : Math.floor((size.entries * maxBytes) / size.bytes);
      const from = size.last - kept;
      for (;;) {
        const entries = await logStore(app).find(numbers(c, 1)).sort({ n: 1 }).limit(BATCH).toArray();
        // The last one stays: the numbers go on from it.
        const old = entries.slice(0, -1).findIndex(({ at, n }) => at >= since && n > from);
        const end = old < 0 ? entries.at(-1) : entries[old];
        if (!end || end === entries[0]) return;
        await logStore(app).deleteMany(numbers(c, 1, end.n));
        if (old >= 0 || entries.length < BATCH) return;
      }
    },
  };
}

/** Whether followers may be sent a deletion for the change under their rules; null if unknown. */
async function openEarlier(
  { rls }: Logged,
  readable: Document,
): Promise<(change: Pick<WatchedChange, 'owners' | 'earlier'>) => boolean | null> {
  if (rls) return ({ owners }) => owners.includes(readable[rls.ownerField]);
  const matcher = (await loadMatchers())({ $and: [{ isDeleted: false }, readable] });
  return ({ earlier }) => earlier && earlier.some(({ bytes }) => matcher.matches(bytes));
}

/** What was before a change, each as far as the entry knows it; null where it does not say enough of that. */
function earlierOf({ rls, rules }: Logged, { documentId, earlier }: LogEntry): EarlierDocument[] | null {
  if (rls || !earlier) return null;
  const fields = readingFields({ rules });
  if (fields.length === 0 || earlier.some((held) => fields.some((name) => !Object.hasOwn(held, name)))) return null;
  return earlier.map((held) => ({ bytes: Buffer.from(serialize({ _id: documentId, ...held })), isPartial: true }));
}

/** The entries after a position; null when the log is another one, or does not reach back to it. */
async function findEntries(
  app: Database,
  c: ObjectId,
  { after, limit }: { after: LogPosition; limit: number },
): Promise<LogEntry[] | null> {
  if ((await beginLog(app, c)).epoch !== after.epoch) return null;
  for (;;) {
    const entries = await logStore(app)
      .find(numbers(c, after.seq + 1), app.db.confirmedReads)
      .sort({ n: 1 })
      .limit(limit)
      .toArray();
    if (entries.length > 0) return entries[0]!.n === after.seq + 1 ? entries : null;
    const last = (await findLast(app, c))?.n ?? -1;
    if (last <= after.seq) return last === after.seq ? [] : null;
    // Numbered between the two reads: it is there now.
  }
}

/**
 * The documents of entries as they are now, null where they do not meet the filter (any more), with their owners. A
 * document reported as deleted may be one that its owner has never seen.
 */
async function readEntries(
  app: Database,
  collection: Logged,
  entries: readonly LogEntry[],
  filter: Document,
  { after, limit, maxBytes }: { after: LogPosition; limit: number; maxBytes: number },
): Promise<WatchedChanges> {
  const found = new Map<string, WatchedChange>();
  let seq = after.seq;
  let bytes = 0;
  let size = CHUNK;
  for (let at = 0; at < entries.length && bytes < maxBytes;) {
    const chunk = entries.slice(at, at + size);
    const rows = await readDocuments(app, collection, chunk, filter, chunk.length === 1 ? Infinity : maxBytes - bytes);
    if (!rows) {
      // Too much at once: the first of them alone is never too much.
      size = Math.max(1, size >> 2);
      continue;
    }
    for (const entry of chunk) {
      const { n, at: moment, documentId, owner } = entry;
      const id = String(documentId);
      const document = rows.get(id) ?? null;
      const known = found.get(id) ?? { owners: [], earlier: [] };
      const before = earlierOf(collection, entry);
      const earlier = known.earlier && before && [...known.earlier, ...before];
      found.delete(id);
      found.set(id, { id, at: moment, document, earlier, owners: [...known.owners, owner] });
      seq = n;
    }
    for (const row of rows.values()) bytes += row.length;
    at += chunk.length;
  }
  const isEnd = entries.length < limit && seq === (entries.at(-1)?.n ?? after.seq);
  return { changes: [...found.values()], seq, isEnd };
}

async function readDocuments(
  app: Database,
  collection: Logged,
  entries: readonly LogEntry[],
  filter: Document,
  maxBytes: number,
): Promise<Map<string, Buffer> | null> {
  const ids = entries.map(({ documentId }) => documentId);
  const cursor = app.db
    .collection(documentsName(collection))
    .find({ $and: [{ _id: { $in: ids as ObjectId[] } }, filter] }, { raw: true });
  const rows = new Map<string, Buffer>();
  let bytes = 0;
  try {
    while (await cursor.hasNext()) {
      // With `raw` the driver hands out bytes, of which its types know nothing.
      for (const row of cursor.readBufferedDocuments() as unknown as Buffer[]) {
        bytes += row.length;
        if (bytes > maxBytes) return null;
        rows.set(documentIdOf(row), row);
      }
    }
  } finally {
    await cursor.close();
  }
  return rows;
}

/** The `_id` of a stored document's bytes as text; ours are identifiers and come first. */
function documentIdOf(row: Buffer): string {
  if (row[4] === 0x07 && row.toString('latin1', 5, 9) === '_id\0') return row.toString('hex', 9, 21);
  return String(deserialize(row)._id);
}
