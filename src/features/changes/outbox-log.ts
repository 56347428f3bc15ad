import { setTimeout as wait } from 'node:timers/promises';
import { ObjectId, serialize, type Document, deserialize } from 'bson';
import type { App } from '../../app.js';
import { isDuplicateKey, loadMatchers, type Store, unlessDuplicate } from '../../platform/database/database.js';
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
 * An entry of a log: numbers of a collection are contiguous, so a reader of a prefix has missed nothing. Number 0
 * begins the log and names its epoch.
 */
interface LogEntry {
  _id: { c: ObjectId; n: number };
  at: Date;
  epoch?: string;
  documentId?: unknown;
  /** The id of the last event that it covers; entries of earlier versions have none. */
  event?: string;
  /** The owner when the entry was made: who may receive the deletion. */
  owner?: unknown;
  /** What the fields of the rule `read` held before each change; absent = unknown. */
  earlier?: Record<string, unknown>[];
}

/** A document after a write whose event is relayed. */
export interface ChangedDocument {
  document: Record<string, unknown>;
  /** The id of the last event of the document in the entry. */
  event: string;
  at: Date;
  /** What is known of it before each of these events; null = not all of it. */
  earlier: Record<string, unknown>[] | null;
}

type Database = Pick<App, 'db'>;

function logStore(app: Database): Store<LogEntry> {
  return app.db.collection<LogEntry>(CHANGE_LOG);
}

/** Other processes notice a changed collection within this. */
const NOTICED_MS = 1_000;
const APPEND_ATTEMPTS = 100;
/** Of two processes that relay the same events, the second finds them among this number of entries besides its own. */
const TAIL = 64;
const TRIM_BATCH = 1_000;
/** Batch size, in documents. */
const CHUNK = 64;

/** The filter of the entries of a collection with numbers from `from`, and below `to`. */
function numbers(c: ObjectId, from: number, to = Number.MAX_SAFE_INTEGER): Document {
  return { _id: { $gte: { c, n: from }, $lt: { c, n: to } } };
}

async function findLast(app: Database, c: ObjectId): Promise<LogEntry | null> {
  const [last] = await findTail(app, c, 1);
  return last ?? null;
}

/** The last entries, the newest first. */
function findTail(app: Database, c: ObjectId, limit: number): Promise<LogEntry[]> {
  const tail = logStore(app).find(numbers(c, 0), app.db.confirmedReads).sort({ _id: -1 }).limit(limit);
  return tail.toArray();
}

async function beginLog(app: Database, c: ObjectId): Promise<LogPosition> {
  for (;;) {
    const head = await logStore(app).findOne({ _id: { c, n: 0 } }, app.db.confirmedReads);
    if (head) return { epoch: head.epoch!, seq: (await findLast(app, c))!._id.n };
    const first = { _id: { c, n: 0 }, at: new Date(), epoch: new ObjectId().toHexString() };
    await unlessDuplicate(logStore(app).insertOne(first));
  }
}

/** As beginLog, but not before every process notices that changes are to be kept, and writes their events. */
async function beginHeard(app: Database, c: ObjectId): Promise<LogPosition> {
  await beginLog(app, c);
  const head = await logStore(app).findOne({ _id: { c, n: 0 } });
  const age = head ? Date.now() - head.at.getTime() : NOTICED_MS;
  if (age >= 0 && age < NOTICED_MS) await wait(NOTICED_MS - age);
  return beginLog(app, c);
}

/** Enough for what is under way, and for who has read documents before their events were taken out. */
const MAX_REMEMBERED = 10_000;
const appended = new WeakMap<App['db'], Map<string, Promise<void>>>();

/**
 * Appends changed documents to their collection's log, each event once by one process, however many relay it at the
 * same time: writers, and readers of the log in the meantime.
 */
export async function appendChanges(
  app: Database,
  collection: Pick<Collection, '_id' | 'rls' | 'rules'>,
  changed: readonly ChangedDocument[],
): Promise<void> {
  const known = appended.get(app.db) ?? new Map<string, Promise<void>>();
  appended.set(app.db, known);
  const others = changed.flatMap(({ event }) => known.get(event) ?? []);
  const fresh = changed.filter(({ event }) => !known.has(event));
  const own = appendEntries(app, collection, fresh);
  for (const { event } of fresh) known.set(event, own);
  try {
    await own;
  } catch (error) {
    for (const { event } of fresh) known.delete(event);
    throw error;
  }
  for (const event of known.keys()) {
    if (known.size <= MAX_REMEMBERED) break;
    known.delete(event);
  }
  await Promise.all(others);
}

/**
 * Two that append at once find each other out by the number that both want; one of them looks again, and appends what
 * the other has not.
 */
async function appendEntries(
  app: Database,
  collection: Pick<Collection, '_id' | 'rls' | 'rules'>,
  changed: readonly ChangedDocument[],
): Promise<void> {
  const c = collection._id;
  const owner = collection.rls?.ownerField;
  const isRuled = readingFields(collection).length > 0;
  let rest = changed.map(({ document, event, at, earlier }) => ({
    at,
    documentId: document._id,
    event,
    ...(owner !== undefined && { owner: document[owner] }),
    ...(isRuled && earlier && { earlier }),
  }));
  if (rest.length > 0) await beginLog(app, c);
  for (let attempt = 0; rest.length > 0; attempt++) {
    const tail = await findTail(app, c, TAIL + rest.length);
    const last = tail[0]?._id.n ?? 0;
    const events = new Set(tail.map(({ event }) => event));
    rest = rest.filter(({ event }) => !events.has(event));
    if (rest.length === 0) return;
    try {
      await logStore(app).insertMany(
        rest.map((entry, at) => ({ _id: { c, n: last + 1 + at }, ...entry })),
        { ordered: true },
      );
      return;
    } catch (error) {
      if (!isDuplicateKey(error) || attempt === APPEND_ATTEMPTS) throw error;
      rest = rest.slice((error as { insertedCount?: number }).insertedCount ?? 0);
    }
  }
}

/**
 * The extent of a log: its entries are numbered without gaps, and each has the size of an average entry of all logs.
 * Null where none was begun.
 */
async function measureOutboxLog(
  app: Database,
  c: ObjectId,
): Promise<(LogSize & { entries: number; last: number }) | null> {
  const last = await findLast(app, c);
  if (!last) return null;
  const oldest = await logStore(app).findOne(numbers(c, 1), { sort: { _id: 1 } });
  if (!oldest) return { bytes: 0, since: null, entries: 0, last: last._id.n };
  const entries = last._id.n - oldest._id.n + 1;
  const all = await app.db.measure(CHANGE_LOG);
  const bytes = Math.ceil((entries * all.bytes) / Math.max(1, all.documents));
  return { bytes, since: oldest.at, entries, last: last._id.n };
}

/** Removes a log with all its entries. */
export async function removeLog(app: Database, c: ObjectId): Promise<void> {
  await logStore(app).deleteMany(numbers(c, 0));
}

/** The collections that have a log. */
export async function listLogged(app: Database): Promise<ObjectId[]> {
  const heads = (await logStore(app)
    .find({ epoch: { $exists: true } })
    .project({ _id: 1 })
    // Projected to what of an entry is used.
    .toArray()) as unknown as LogEntry[];
  return heads.map(({ _id }) => _id.c);
}

/** The log that the outbox fills. It knows nothing of writes that others than the service make. */
export function openOutboxLog(app: Database, collection: Logged): ChangeLog {
  const c = collection._id;
  return {
    begin: () => beginHeard(app, c),
    async read(search) {
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
      const entries = await findEntries(app, c, search);
      return entries && readEntries(app, collection, entries, search.visible, search);
    },
    async history({ id, before, limit, maxEntries }) {
      const last = await findLast(app, c);
      if (!last) return null;
      const to = Math.min(before ?? Infinity, last._id.n + 1);
      const from = Math.max(1, to - maxEntries);
      const entries = await logStore(app)
        .find({ ...numbers(c, from, to), documentId: id }, app.db.confirmedReads)
        .sort({ _id: -1 })
        .limit(limit)
        .toArray();
      const changes = entries.map((entry) => {
        const earlier = earlierOf(collection, entry)?.at(-1) ?? null;
        return { at: entry.at, change: 'changed' as const, earlier };
      });
      const oldest = entries.length === limit ? entries.at(-1)!._id.n : from;
      return { changes, next: oldest > 1 ? oldest : null };
    },
    end: () => removeLog(app, c),
    size: () => measureOutboxLog(app, c),
    async trim(since, maxBytes) {
      const size = await measureOutboxLog(app, c);
      if (!size) return;
      const kept = size.bytes <= maxBytes ? Infinity : Math.floor((size.entries * maxBytes) / size.bytes);
      const from = size.last - kept;
      for (;;) {
        const entries = await logStore(app).find(numbers(c, 1)).sort({ _id: 1 }).limit(TRIM_BATCH).toArray();
        // The last one stays: the numbers go on from it.
        const old = entries.slice(0, -1).findIndex(({ at, _id }) => at >= since && _id.n > from);
        const end = old < 0 ? entries.at(-1) : entries[old];
        if (!end || end === entries[0]) return;
        await logStore(app).deleteMany(numbers(c, 1, end._id.n));
        if (old >= 0 || entries.length < TRIM_BATCH) return;
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
      .sort({ _id: 1 })
      .limit(limit)
      .toArray();
    if (entries.length > 0) return entries[0]!._id.n === after.seq + 1 ? entries : null;
    const last = (await findLast(app, c))?._id.n ?? -1;
    if (last <= after.seq) return last === after.seq ? [] : null;
    // Appended between the two reads: it is there now.
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
      const { _id, at: moment, documentId, owner } = entry;
      const id = String(documentId);
      const document = rows.get(id) ?? null;
      const known = found.get(id) ?? { owners: [], earlier: [] };
      const before = earlierOf(collection, entry);
      const earlier = known.earlier && before && [...known.earlier, ...before];
      found.delete(id);
      found.set(id, { id, at: moment, document, earlier, owners: [...known.owners, owner] });
      seq = _id.n;
    }
    for (const row of rows.values()) bytes += row.length;
    at += chunk.length;
  }
  const isEnd = entries.length < limit && seq === (entries.at(-1)?._id.n ?? after.seq);
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
