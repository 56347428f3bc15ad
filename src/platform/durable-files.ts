import { closeSync, fsyncSync, openSync } from 'node:fs';
import { mkdir, open, rename } from 'node:fs/promises';
import { dirname } from 'node:path';

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

/** Makes a directory with those above it that are missing. They survive a power cut. */
export async function makeDirectory(path: string): Promise<void> {
  const made = await mkdir(path, { recursive: true, mode: 0o700 });
  if (made === undefined) return;
  for (let dir = path; dir !== dirname(made); dir = dirname(dir)) await syncPath(dirname(dir));
}
