import { CHANGE_LOG } from '../changes/stored-log.js';
import type { App } from '../../app.js';
import { databaseInAddress } from '../../config/setting-readers.js';
import type { Config } from '../../config/config.js';
import { AppError, conflict, unavailable } from '../../errors.js';
import { inWorkFolder } from '../../platform/processes/work-folder.js';
import { openDatabase, type Database, type Store } from '../../platform/database/database.js';
import { findMoveMark, MOVES, writeMoveMark, type MoveMark } from '../../platform/database/move-mark.js';
import { ENCRYPTION_KEYS } from '../../platform/secrets/encryption-keys.js';
import { RESTORES } from '../../platform/database/restore-mark.js';
import { AUDIT_LOG, type AuditEntry } from '../audit/audit-log.js';
import { copyCollection, presentId, readExactly, readIndexes, readRaw } from './copy-collection.js';
import { openDisplayNames } from '../collections/display-names.js';
import { createHash } from 'node:crypto';
import { isDeepStrictEqual } from 'node:util';
import type { Document } from 'bson';

interface Comparison {
  documents: number;
  indexes: number;
  /** SHA-256 over the compared documents in the order of their ids. */
  sha256: string;
  /** The first difference, in words; null when there is none. */
  difference: string | null;
}

/** Documents that run out within this time are not compared: a server may remove them at any moment. */
const EXPIRY_MARGIN_MS = 6 * 3_600_000;

/**
 * Reads two collections from end to end and compares count, content and indexes. `filter` leaves out what may differ.
 */
export async function compareCollections(
  from: Store<Document>,
  to: Store<Document>,
  { filter, nowMs, stop }: { filter: Document; nowMs: number; stop: AbortSignal },
): Promise<Comparison> {
  const [indexes, there] = await Promise.all([readIndexes(from), readIndexes(to)]);
  const lasting = { $and: [filter, ...indexes.flatMap((index) => outlivesCheck(index, nowMs))] };
  const hashes = [createHash('sha256'), createHash('sha256')] as const;
  const left = readRaw(from, lasting)[Symbol.asyncIterator]();
  const right = readRaw(to, lasting)[Symbol.asyncIterator]();
  let difference: string | null = null;
  let documents = 0;
  try {
    for (;;) {
      stop.throwIfAborted();
      const [here, copy] = await Promise.all([left.next(), right.next()]);
      if (here.done && copy.done) break;
      if (!here.done) hashes[0].update(here.value);
      if (!copy.done) hashes[1].update(copy.value);
      if (here.done || copy.done || Buffer.compare(here.value, copy.value) !== 0) {
        const raw = (here.done ? copy.value : here.value) as Buffer;
        difference = `the document ${presentId(readExactly(raw))}`;
        break;
      }
      documents++;
    }
  } finally {
    await Promise.all([left.return?.(), right.return?.()]);
  }
  const [sha256, copied] = hashes.map((hash) => hash.digest('hex'));
  if (!difference && sha256 !== copied) difference = 'its content';
  difference ??= findIndexDifference(indexes, there);
  return { documents, indexes: indexes.length, sha256: sha256!, difference };
}

function outlivesCheck(index: Document, nowMs: number): Document[] {
  const seconds: unknown = index.expireAfterSeconds;
  if (typeof seconds !== 'number') return [];
  const [field] = Object.keys(index.key as object);
  return [{ [field!]: { $not: { $lt: new Date(nowMs + EXPIRY_MARGIN_MS - seconds * 1000) } } }];
}

/** The options of an index that are copied; servers tell more of their own. */
const COPIED_OPTIONS = ['unique', 'sparse', 'partialFilterExpression', 'expireAfterSeconds', 'hidden', 'collation'];

function optionOf(index: Document, option: string): unknown {
  const value: unknown = index[option];
  // Each server writes the version of its own tables.
  return option === 'collation' && value !== undefined ? { ...(value as Document), version: undefined } : value;
}

function findIndexDifference(indexes: readonly Document[], there: readonly Document[]): string | null {
  const copies = new Map(there.map((index) => [index.name, index]));
  for (const index of indexes) {
    const copy = copies.get(index.name);
    copies.delete(index.name);
    if (copy === undefined) return `the index ${String(index.name)}, which is missing there,`;
    // The order of the fields has a meaning.
    const sameKey = isDeepStrictEqual(Object.entries(index.key as object), Object.entries(copy.key as object));
    const option = COPIED_OPTIONS.find((name) => !isDeepStrictEqual(optionOf(index, name), optionOf(copy, name)));
    if (!sameKey) return `the key of the index ${String(index.name)}`;
    if (option !== undefined) return `${option} of the index ${String(index.name)}`;
  }
  const [more] = copies.keys();
  return more === undefined ? null : `the index ${String(more)}, which is only there,`;
}

export interface MovedCollection {
  name: string;
  documents: number;
  indexes: number;
  /** Over the documents in the order of their ids; null when they were only counted. */
  sha256: string | null;
}

export interface MoveReport {
  database: string;
  collections: MovedCollection[];
  documents: number;
  /** Documents that this run had to write or remove there; 0 when an earlier one had done it all. */
  written: number;
  removed: number;
  /** Processes that have the store open: they may write what is not there. */
  inUseBy: number[];
  /** True when nothing can have been written since the copy was taken: now the database may be served. */
  done: boolean;
}

export interface MoveOptions {
  stop: AbortSignal;
  /** Only look whether it could be done, and at what. */
  dryRun: boolean;
  onProgress: (text: string) => void;
}

/** The name under which this very act is recorded; it begins before the copy is taken and ends after it. */
const OWN_ACTION = 'move-to';

/**
 * Makes the database that `uri` names hold what the embedded store holds: as of one moment, by an online copy, so that
 * serving may go on; then compares every document. May be repeated after an interruption, and to bring over what was
 * written since. 409 when this store is not an embedded one, when the database there holds something else or was
 * served since, and when the comparison finds a difference.
 */
export async function moveStore(app: App, uri: string, options: MoveOptions): Promise<MoveReport> {
  if (app.config.mongodbUri) {
    throw conflict(
      'NOT_EMBEDDED',
      'The data is in a MongoDB already (MONGODB_URI is set): only an embedded store is moved.',
    );
  }
  return inWorkFolder((workDir) => moveBy(app, uri, workDir, options));
}

async function moveBy(app: App, uri: string, workDir: string, options: MoveOptions): Promise<MoveReport> {
  let target: Database | null = null;
  let frozen: Database | null = null;
  try {
    target = await openTarget({ ...app.config, mongodbUri: uri });
    const before = app.db.listOtherProcesses();
    frozen = await freezeWhole(app, workDir, options.stop);
    await requireProjects(frozen);
    const source = await identifyStore(frozen);
    const database = databaseInAddress(uri);
    const mark = await requireOwnTarget(target, source, database);
    const names = (await frozen.listNames()).filter((name) => ![MOVES, RESTORES, CHANGE_LOG].includes(name)).sort();
    const report: MoveReport = {
      database,
      collections: [],
      documents: 0,
      written: 0,
      removed: 0,
      inUseBy: before,
      done: false,
    };
    if (options.dryRun) return await describe(frozen, names, report);
    if (mark?.done) return await confirmMoved(app, frozen, target, names, report, options);
    const started: MoveMark = {
      _id: 'move',
      source,
      startedAt: mark?.startedAt ?? new Date(app.clock.now()),
      verifiedAt: null,
      done: false,
    };
    await writeMoveMark(target, started);
    await copyAll(frozen, target, names, report, options);
    const difference = await compareAll(app, frozen, target, names, report, { ...options, inUse: false });
    if (difference) {
      throw conflict(
        'MOVE_DIFFERS',
        `What was copied is not what is stored: ${difference} differs. Make sure that nobody else writes to that database, then run it again.`,
      );
    }
    report.inUseBy = [...new Set([...before, ...app.db.listOtherProcesses()])];
    report.done = report.inUseBy.length === 0 && !(await wasChangedSince(app, frozen));
    // The act is over there, where it is read from now on; here it ends with the command.
    if (report.done) await endOwnActs(target);
    await writeMoveMark(target, { ...started, verifiedAt: new Date(app.clock.now()), done: report.done });
    return report;
  } finally {
    await frozen?.close();
    await target?.close();
  }
}

/** openDatabase with errors about the address given here: MONGODB_URI is not set. */
async function openTarget(config: Config): Promise<Database> {
  try {
    return await openDatabase(config);
  } catch (error) {
    if (!(error instanceof AppError)) throw error;
    const message = error.message.replace('MONGODB_URI', 'the address given');
    throw unavailable('TARGET_UNAVAILABLE', message, { cause: error });
  }
}

/** A store in which nothing was ever made is hardly the one that was meant. */
async function requireProjects(source: Database): Promise<void> {
  if ((await source.collection('projects').countDocuments({}, { limit: 1 })) > 0) return;
  throw conflict(
    'NOTHING_TO_MOVE',
    'The embedded store has no projects: nothing to move. Check BSVC_DATA_DIR, or start with the MongoDB at once by setting MONGODB_URI.',
  );
}

/** A store is known by the moment of its first migration, which is written once. */
async function identifyStore(db: Database): Promise<string> {
  const [first] = await db.collection('migrations').find({}).sort({ appliedAt: 1, _id: 1 }).limit(1).toArray();
  return `${String(first!._id)} ${(first!.appliedAt as Date).toISOString()}`;
}

async function requireOwnTarget(target: Database, source: string, databaseName: string): Promise<MoveMark | null> {
  const mark = await findMoveMark(target);
  if (mark?.source === source) return mark;
  if (mark === null && (await isUnused(target))) return null;
  throw conflict(
    'TARGET_NOT_EMPTY',
    `The database "${databaseName}" there holds ${mark ? 'another moved store' : 'something already'}. Name another one in the path of the address, or empty it.`,
  );
}

/** Collections that any command makes in a database by looking at it; the copy takes their place. */
const LEFT_BY_LOOKING: ReadonlySet<string> = new Set(['migrations', ENCRYPTION_KEYS, AUDIT_LOG]);

async function isUnused(target: Database): Promise<boolean> {
  for (const name of await target.listNames()) {
    if (!LEFT_BY_LOOKING.has(name) && (await target.collection(name).findOne({})) !== null) return false;
  }
  return true;
}

async function describe(frozen: Database, names: string[], report: MoveReport): Promise<MoveReport> {
  for (const name of names) {
    const store = frozen.collection(name);
    const documents = await store.countDocuments({});
    const indexes = (await store.indexes()).length - 1;
    report.collections.push({ name, documents, indexes, sha256: null });
    report.documents += documents;
  }
  return report;
}

async function copyAll(
  frozen: Database,
  target: Database,
  names: string[],
  report: MoveReport,
  { stop, onProgress }: MoveOptions,
): Promise<void> {
  const kept = new Set([...names, MOVES]);
  for (const name of await target.listNames()) if (!kept.has(name)) await target.collection(name).drop();
  let done = 0;
  for (const name of names) {
    const counts = await copyCollection(frozen.collection(name), target.collection(name), {
      stop,
      onProgress: (seen) => onProgress(`Copying ${name} (${done + 1} of ${names.length}): ${seen} documents`),
    });
    report.written += counts.written;
    report.removed += counts.removed;
    done++;
  }
}

/** Fills in the report; answers the first difference in words, or null. */
async function compareAll(
  app: App,
  frozen: Database,
  target: Database,
  names: string[],
  report: MoveReport,
  { stop, onProgress, inUse }: MoveOptions & { inUse: boolean },
): Promise<string | null> {
  for (const name of names) {
    onProgress(`Verifying ${name} (${report.collections.length + 1} of ${names.length})`);
    const { difference, ...compared } = await compareCollections(frozen.collection(name), target.collection(name), {
      filter: inUse && name === AUDIT_LOG ? { action: { $ne: OWN_ACTION } } : {},
      nowMs: app.clock.now(),
      stop,
    });
    if (difference) return `${difference} of the collection ${name}`;
    report.collections.push({ name, ...compared });
    report.documents += compared.documents;
  }
  return null;
}

/** A finished move is only looked at: the database may have been served since, and must not be written over. */
async function confirmMoved(
  app: App,
  frozen: Database,
  target: Database,
  names: string[],
  report: MoveReport,
  options: MoveOptions,
): Promise<MoveReport> {
  const difference = await compareAll(app, frozen, target, names, report, { ...options, inUse: true });
  if (difference === null) return { ...report, done: true };
  throw conflict(
    'MOVED_ALREADY',
    `This store was moved there before, and one of the two has changed since: ${difference} differs. To move it again, empty the database "${report.database}" first, or choose another with --db.`,
  );
}

/** True if a command has changed something since the copy was taken; servers show by their processes. */
async function wasChangedSince(app: App, frozen: Database): Promise<boolean> {
  const filter = { action: { $ne: OWN_ACTION } };
  const [now, then] = await Promise.all(
    [app.db, frozen].map((db) => db.collection<AuditEntry>(AUDIT_LOG).countDocuments(filter)),
  );
  return now !== then;
}

async function endOwnActs(target: Database): Promise<void> {
  await target
    .collection<AuditEntry>(AUDIT_LOG)
    .updateMany({ action: OWN_ACTION, outcome: 'started' }, { $set: { outcome: 'done' } });
}

/**
 * The data as of one moment, as `Database.freeze`. 409 STORE_DAMAGED names collections as their owners do, so that a
 * damaged store never becomes a copy that looks whole.
 */
export async function freezeWhole(app: App, dir: string, stop: AbortSignal): Promise<Database> {
  try {
    return await app.db.freeze(dir, stop);
  } catch (error) {
    if (!(error instanceof AppError) || error.code !== 'STORE_DAMAGED') throw error;
    throw conflict(error.code, (await openDisplayNames(app))(error.message), { cause: error });
  }
}
