import { mkdtemp, readdir, rm, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { basename, dirname, join } from 'node:path';
import { DAY_MS } from '../time/clock.js';
import { isRunning, OWNER, OWNER_PATTERN } from './owner.js';

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
