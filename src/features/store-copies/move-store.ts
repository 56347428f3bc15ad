import { CHANGE_LOG } from '../changes/outbox-log.js';
import type { App } from '../../app.js';
import { databaseInAddress } from '../../config/setting-readers.js';
import type { Config } from '../../config/config.js';
import { AppError, conflict, unavailable } from '../../errors.js';
import { inWorkFolder } from '../../platform/processes/work-folder.js';
import { openDatabase, type Database } from '../../platform/database/database.js';
import { findMoveMark, MOVES, writeMoveMark, type MoveMark } from '../../platform/database/move-mark.js';
import { SEALING_KEYS } from '../../platform/secrets/sealing-keys.js';
import { RESTORES } from '../../platform/database/restore-mark.js';
import { AUDIT_LOG, type AuditEntry } from '../audit/audit-log.js';
import { freezeWhole } from './freeze-whole.js';
import { compareCollections } from './compare-collections.js';
import { copyCollection } from './copy-collection.js';

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
const LEFT_BY_LOOKING: ReadonlySet<string> = new Set(['migrations', SEALING_KEYS, AUDIT_LOG]);

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
