import { mkdtemp, readdir, rm, stat } from 'node:fs/promises';
import { tmpdir, hostname } from 'node:os';
import { basename, dirname, join } from 'node:path';
import { DAY_MS } from '../time/clock.js';
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';

/** A directory may be shared with other machines and containers, whose processes cannot be looked up here. */
const MACHINE = createHash('sha256').update(hostname()).digest('hex').slice(0, 8);

/** The identifier of this process in names of temporary files. */
export const OWNER = `${MACHINE}-${process.pid}-${startOf(process.pid) ?? 0}`;

/** An owner in the name of a file, for patterns. */
export const OWNER_PATTERN = '[0-9a-f]{8}-\\d+-\\d+';

const FOLDER = new RegExp(`^bsvc-work-(${OWNER_PATTERN})-\\w{6}$`);
/** What a process of another machine has not touched for so long is left behind. */
const FOREIGN_MS = DAY_MS;

/** Runs `work` with a new folder, which is removed afterwards. Those of killed processes go first. */
export async function inWorkFolder<T>(work: (dir: string) => Promise<T>): Promise<T> {
  await removeLeftWorkFolders();
  const dir = await mkdtemp(join(tmpdir(), `bsvc-work-${OWNER}-`));
  try {
    return await work(dir);
  } finally {
    await rm(dir, { recursive: true, force: true });
  }
}

/** Removes the work folders of killed processes: a backup's is as large as the store. */
export async function removeLeftWorkFolders(): Promise<void> {
  await removeLeft(tmpdir(), (name) => FOLDER.exec(name)?.[1]);
}

/** The name of the draft of a file, which this process writes until it is whole. */
export function nameDraft(path: string): string {
  return `${path}.${OWNER}.part`;
}

const DRAFT = new RegExp(`^(.+)\\.(${OWNER_PATTERN})\\.part$`);

/** Removes what killed processes left of the file at `path`, and of those beside it whose names are like `others`. */
export async function removeLeftDrafts(path: string, others?: RegExp): Promise<void> {
  await removeLeft(dirname(path), (name) => {
    const [, file = '', owner] = DRAFT.exec(name) ?? [];
    return file === basename(path) || others?.test(file) === true ? owner : undefined;
  });
}

/**
 * Removes what killed processes left in a directory. `ownerOf` finds the process in a name; undefined for what is none
 * of ours.
 */
async function removeLeft(dir: string, ownerOf: (name: string) => string | undefined): Promise<void> {
  for (const name of await readdir(dir).catch(() => [])) {
    const owner = ownerOf(name);
    if (owner === undefined || !(await isLeft(join(dir, name), owner, FOREIGN_MS))) continue;
    // Another user's cannot be removed, and is not ours to remove.
    await rm(join(dir, name), { recursive: true, force: true }).catch(() => undefined);
  }
}

/** True if the file is no longer in use; one of another machine by the time since its last change. */
export async function isLeft(path: string, owner: string, foreignMs: number, nowMs = Date.now()): Promise<boolean> {
  const running = isRunning(owner);
  if (running !== null) return !running;
  const changedMs = (await stat(path).catch(() => null))?.mtimeMs ?? Infinity;
  return nowMs - changedMs > foreignMs;
}

/**
 * Whether the process that made a temporary file still runs; null for one of another machine. A process id alone does
 * not say: a container gives its processes the same ids at each start.
 */
function isRunning(owner: string): boolean | null {
  if (owner === OWNER) return true;
  const [machine, pid, start] = owner.split('-');
  if (machine !== MACHINE) return null;
  if (Number(pid) === process.pid) return false;
  const found = startOf(Number(pid));
  if (found !== null) return found === Number(start);
  try {
    process.kill(Number(pid), 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code !== 'ESRCH';
  }
}

/** When a process began, in the ticks of Linux since the machine's start; null where that cannot be read. */
function startOf(pid: number): number | null {
  try {
    const line = readFileSync(`/proc/${pid}/stat`, 'utf8');
    // The name before it, in brackets, may hold anything.
    return Number(line.slice(line.lastIndexOf(')') + 2).split(' ')[19]);
  } catch {
    return null;
  }
}
