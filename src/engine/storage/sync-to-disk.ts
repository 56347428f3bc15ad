import { closeSync, fsyncSync, openSync } from 'node:fs';

/** Makes sure that a file's content, or a directory's entries, are on the disk. */
export function syncToDisk(path: string): void {
  const file = openSync(path, 'r');
  try {
    fsyncSync(file);
  } finally {
    closeSync(file);
  }
}
