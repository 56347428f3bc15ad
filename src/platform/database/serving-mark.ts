import { mkdir, readdir, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Database } from './database.js';
import { findFullDisk } from './full-disk.js';

export interface ServingMark {
  /** Processes that serve the same embedded store and know nothing of this one. */
  others: number[];
  remove(): Promise<void>;
}

/**
 * Marks a data directory's embedded store as served by this process, for later ones to see, and removes marks of
 * processes that are gone.
 */
export async function markServing(db: Database, dataDir: string): Promise<ServingMark> {
  if (db.kind !== 'embedded') return { others: [], remove: () => Promise.resolve() };
  const dir = join(dataDir, 'serving');
  const own = join(dir, String(process.pid));
  try {
    await mkdir(dir, { recursive: true, mode: 0o700 });
    await writeFile(own, '', { mode: 0o600 });
  } catch (error) {
    // A mark is a courtesy: with a full disk there is still much to read and to delete.
    if (findFullDisk(error)) return { others: [], remove: () => Promise.resolve() };
    throw error;
  }
  const alive = new Set(db.listOtherProcesses().map(String));
  const others: number[] = [];
  for (const name of await readdir(dir)) {
    if (alive.has(name)) others.push(Number(name));
    else if (name !== String(process.pid)) await rm(join(dir, name), { force: true });
  }
  return { others, remove: () => rm(own, { force: true }) };
}
