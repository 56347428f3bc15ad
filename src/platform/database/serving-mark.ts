import { readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { makeDirectory } from '../durable-files.js';
import type { Database } from './database.js';
import { findFullDisk } from './outages.js';

export interface ServingMark {
  /** Processes that serve the same embedded store and know nothing of this one. */
  others: number[];
  /** Notes where it is reached, for `findServedAddress`. */
  tell(address: string): Promise<void>;
  remove(): Promise<void>;
}

const NO_MARK: ServingMark = { others: [], tell: () => Promise.resolve(), remove: () => Promise.resolve() };
const MARK_FILE = { mode: 0o600 };

const folderOf = (dataDir: string): string => join(dataDir, 'serving');

/**
 * Marks a data directory's embedded store as served by this process, for later ones to see, and removes marks of
 * processes that are gone.
 */
export async function markServing(db: Database, dataDir: string): Promise<ServingMark> {
  if (db.kind !== 'embedded') return NO_MARK;
  const dir = folderOf(dataDir);
  const own = join(dir, String(process.pid));
  try {
    await makeDirectory(dir);
    await writeFile(own, '', MARK_FILE);
  } catch (error) {
    // A mark is a courtesy: with a full disk there is still much to read and to delete.
    if (findFullDisk(error)) return NO_MARK;
    throw error;
  }
  const alive = new Set(db.listOtherProcesses().map(String));
  const others: number[] = [];
  for (const name of await readdir(dir)) {
    if (alive.has(name)) others.push(Number(name));
    else if (name !== String(process.pid)) await rm(join(dir, name), { force: true });
  }
  return { others, tell: (address) => writeFile(own, address, MARK_FILE), remove: () => rm(own, { force: true }) };
}

/** Where a running service of this store is reached, as published by it; null if there is none. */
export async function findServedAddress(db: Database, dataDir: string): Promise<string | null> {
  for (const pid of db.listOtherProcesses()) {
    const address = await readFile(join(folderOf(dataDir), String(pid)), 'utf8').catch(() => '');
    if (address !== '') return address;
  }
  return null;
}
