import { linkSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { randomToken } from './ids.js';

const FILE_NAME = 'secret.key';

/** The master key kept in the data directory, made on first use (mode 0600); processes that start at once agree on one. */
export function readOrCreateMasterKey(dataDir: string): string {
  const path = join(dataDir, FILE_NAME);
  const existing = findKey(path);
  if (existing) return existing;
  mkdirSync(dataDir, { recursive: true, mode: 0o700 });
  // Written aside and linked: the name appears with its whole content or not at all, and the first one wins.
  const draft = join(dataDir, `${FILE_NAME}.${process.pid}.${randomToken(6)}`);
  writeFileSync(draft, `${randomToken(32)}\n`, { mode: 0o600, flag: 'wx' });
  try {
    linkSync(draft, path);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
  } finally {
    rmSync(draft, { force: true });
  }
  const key = findKey(path);
  if (!key) throw new Error(`${path} is empty: restore it from a backup, or remove it if nothing was stored with it`);
  return key;
}

/** Puts a new key in front of those in the data directory's file: it seals from now on, the others still open. The file changes by one rename. */
export function prependMasterKey(dataDir: string): void {
  const path = join(dataDir, FILE_NAME);
  const draft = join(dataDir, `${FILE_NAME}.${process.pid}.${randomToken(6)}`);
  writeFileSync(draft, `${randomToken(32)},${readOrCreateMasterKey(dataDir)}\n`, { mode: 0o600, flag: 'wx' });
  renameSync(draft, path);
}

/** Puts another key, or list of keys, in the place of the data directory's own: what the present one sealed opens no more. One rename. */
export function replaceMasterKey(dataDir: string, key: string): void {
  mkdirSync(dataDir, { recursive: true, mode: 0o700 });
  const draft = join(dataDir, `${FILE_NAME}.${process.pid}.${randomToken(6)}`);
  writeFileSync(draft, `${key}\n`, { mode: 0o600, flag: 'wx' });
  renameSync(draft, join(dataDir, FILE_NAME));
}

function findKey(path: string): string | null {
  try {
    return readFileSync(path, 'utf8').trim() || null;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null;
    throw error;
  }
}
