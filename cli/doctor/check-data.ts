import { readFile, stat } from 'node:fs/promises';
import { setTimeout as wait } from 'node:timers/promises';
import type { App } from '../../src/app.js';
import { openDisplayNames } from '../../src/features/collections/display-names.js';
import { type Database, verifyUnopened } from '../../src/platform/database/database.js';
import { presentBytes, countOf } from '../view/present.js';
import { failed, passed, type CheckResult } from './check.js';
import type { Context } from '../shell/context.js';
import { Interrupted, presentFailure } from '../view/exit.js';
import { checkFiles } from '../../src/features/files/check-files.js';

/** Different findings that are shown. */
const MOST_DAMAGE = 5;
const DAMAGE_HINT =
  '"bsvc doctor --deep" checks everything, and clears this message if all is intact. "bsvc doctor --repair" saves what is not damaged, "bsvc restore" restores a backup.';

/** The age beyond which a snapshot is not an ordinary read's. */
const HELD_MS = 1_000;

/**
 * The file of the embedded store: its size, what of it is free, and who keeps free pages from being used; nothing for a
 * MongoDB.
 */
export async function checkStore(app: App): Promise<CheckResult[]> {
  return [...(await checkFile(app.db)), ...(await checkDamage(app))];
}

/** What servers, workers and commands met while they worked. */
async function checkDamage(app: App): Promise<CheckResult[]> {
  const met = app.db.listDamage();
  if (met.length === 0) return [];
  const first = [...new Set(met.map(({ message }) => message))].slice(0, MOST_DAMAGE);
  const lines = first.map((message) => `met ${met.find((one) => one.message === message)!.at}: ${message}`);
  return [failed('damage', (await openDisplayNames(app))(lines.join('\n')), DAMAGE_HINT)];
}

async function checkFile(db: Database): Promise<CheckResult[]> {
  const { fileBytes, freeBytes } = db.stats();
  if (fileBytes === undefined) return [];
  const size = `${presentBytes(fileBytes)}, ${presentBytes(freeBytes!)} of them free`;
  if (othersAt(db).length === 0) return [passed('data file', size)];
  const seenAt = performance.now();
  // A timer counts from when the turn began in which it was set: it may come too early for the ages.
  for (let left = HELD_MS; left > 0; left = HELD_MS - (performance.now() - seenAt)) await wait(left);
  const held = othersAt(db).filter(({ ageMs }) => ageMs >= HELD_MS);
  if (held.length === 0) return [passed('data file', size)];
  const stopped: number[] = [];
  for (const { pid } of held) if (await isStopped(pid)) stopped.push(pid);
  if (stopped.length === 0) {
    return [
      passed('data file', `${size}; process ${held.map(({ pid }) => pid).join(', ')} is reading from a snapshot`),
    ];
  }
  const pids = stopped.join(' ');
  return [
    failed(
      'data file',
      `${size}; it grows with every write, since a stopped process reads from it (${pids})`,
      `Let it go on or end it: kill -CONT ${pids}, kill -KILL ${pids}`,
    ),
  ];
}

function othersAt(db: Database): { pid: number; ageMs: number }[] {
  return db.listSnapshots().filter(({ pid }) => pid !== process.pid);
}

/** True if Ctrl-Z or a debugger has stopped the process, by Linux's word; false where the system does not say. */
async function isStopped(pid: number): Promise<boolean> {
  const line = await readFile(`/proc/${pid}/stat`, 'utf8').catch(() => '');
  return /^[Tt]/.test(line.slice(line.lastIndexOf(')') + 2));
}

export const CONTENT = 'content';
const RESTORE =
  'Stop the service, then run "bsvc doctor --repair": it saves what is intact and reports what is not; "bsvc restore" into a new data directory (--data-dir) restores a backup.';

/** Reads the whole embedded store, as of one moment, and names what is damaged: `bsvc doctor --deep`. */
export async function checkContent(context: Context): Promise<CheckResult> {
  let config;
  try {
    ({ config } = context.settings());
  } catch (error) {
    return failed(CONTENT, presentFailure(error).message, 'Correct them; "bsvc settings" lists all.');
  }
  if (config.mongodbUri) return passed(CONTENT, 'not checked: MongoDB has the command "validate" in mongosh');
  if (!(await stat(config.dataDir).catch(() => null))) return passed(CONTENT, 'nothing is stored yet');
  const progress = await context.out.progress('Reading the database');
  let lostPages = 0;
  const options = {
    signal: context.stop,
    onLostPages: (pages: number) => {
      lostPages = pages;
    },
    onProgress: (done: number, all: number) => {
      progress.update(`Reading the database: ${done} of ${all} pages`);
    },
  };
  try {
    const app = await openApp(context);
    const problems = await (app ? app.db.verify(options) : verifyUnopened(config, options));
    if (problems.length === 0) {
      const whole = 'every page, document, index entry and count is as it was stored';
      return passed(CONTENT, lostPages === 0 ? whole : `${whole}; ${noteLost(lostPages)}`);
    }
    return failed(CONTENT, (await openDisplayNames(app))(problems.join('\n')), RESTORE);
  } catch (error) {
    if (context.stop.aborted) throw new Interrupted();
    return failed(CONTENT, presentFailure(error).message, RESTORE);
  } finally {
    progress.stop();
  }
}

/** LMDB loses a page now and then; a backup holds documents, not pages. */
function noteLost(pages: number): string {
  return `${countOf(pages, 'page')} of the file can no longer be used, which is harmless: a restored backup has none`;
}

/** Null for a store that cannot be opened: then its file is read as it is. */
function openApp(context: Context): Promise<App | null> {
  return context.app('diagnosis').catch(() => null);
}

export const UPLOADED = 'files';
/** Files that are named; --json of a backup names more. */
const MOST_NAMED = 20;
const RESTORE_FILES =
  'Copy them back from a backup ("bsvc restore" into a new data directory, then its folder "files"), or delete them.';

/** Reads all uploaded files and names those that are damaged or missing: a part of `bsvc doctor --deep`. */
export async function checkUploads(context: Context): Promise<CheckResult> {
  const app = await context.app('diagnosis').catch(() => null);
  if (!app) return failed(UPLOADED, 'not checked: the database cannot be opened', 'See the lines above.');
  const progress = await context.out.progress('Reading uploaded files');
  try {
    const found = await checkFiles(app, {
      signal: context.stop,
      onProgress: (checked) => progress.update(`Reading uploaded files: ${checked}`),
    });
    const skipped = found.unreachable > 0 ? `; ${countOf(found.unreachable, 'file')} in buckets not reached` : '';
    if (found.damagedFiles === 0) return passed(UPLOADED, `${countOf(found.checked, 'file')} as stored${skipped}`);
    const rest = found.damagedFiles - MOST_NAMED;
    const lines = [...found.damage.slice(0, MOST_NAMED), ...(rest > 0 ? [`… and ${rest} more.`] : [])];
    return failed(UPLOADED, `${lines.join('\n')}${skipped}`, RESTORE_FILES);
  } catch (error) {
    if (context.stop.aborted) throw new Interrupted();
    return failed(UPLOADED, presentFailure(error).message, 'See "content" above.');
  } finally {
    progress.stop();
  }
}
