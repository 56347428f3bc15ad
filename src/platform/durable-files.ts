import { closeSync, fsyncSync, openSync } from 'node:fs';
import { mkdir, open, rename, stat } from 'node:fs/promises';
import { dirname } from 'node:path';
import { conflict } from '../errors.js';

/** Makes sure that a file's content, or a directory's entries, survive a power cut. */
export async function syncPath(path: string): Promise<void> {
  const handle = await open(path, 'r');
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}

/** The same without giving others a turn. */
export function syncPathNow(path: string): void {
  const file = openSync(path, 'r');
  try {
    fsyncSync(file);
  } finally {
    closeSync(file);
  }
}

/**
 * Gives a finished draft its name. Content and name survive a power cut; a file that had the name before is replaced.
 */
export async function placeFile(draft: string, path: string): Promise<void> {
  await syncPath(draft);
  await rename(draft, path);
  await syncPath(dirname(path));
}

/** Of directories that belong among sources: as the system makes them. */
export const DIRECTORY_FOR_ALL = 0o777;
const OWNERS = 0o700;

/**
 * Makes a directory with those above it that are missing. They survive a power cut. One by one: Node's own `recursive`
 * never ends below a directory that says of each new name that it is not there, as /proc does.
 */
export async function makeDirectory(path: string, mode = OWNERS): Promise<void> {
  if (await isMade(path, mode)) return;
  await makeDirectory(dirname(path), mode);
  if (await isMade(path, mode)) return;
  throw conflict('NO_DIRECTORY', `${path} cannot be made: the system takes no directory there. Choose another place.`);
}

/** False where the directory above is missing. */
async function isMade(path: string, mode: number): Promise<boolean> {
  try {
    await mkdir(path, { mode });
    await syncPath(dirname(path));
    return true;
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'ENOENT') return path === dirname(path);
    if ((await stat(path).catch(() => null))?.isDirectory()) return true;
    throw error;
  }
}
