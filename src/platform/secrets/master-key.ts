import { ConfigError, type Config } from '../../config/config.js';
import { existsSync, linkSync, mkdirSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { readTextFileSync } from '../../text.js';
import { conflict } from '../../errors.js';
import { syncPathNow } from '../durable-files.js';
import { randomToken } from '../ids.js';

/** Refuses a MongoDB without BSVC_SECRET_KEY: only an embedded store has a place to keep a key of its own. */
export function requireSecretKey({ mongodbUri, secretKey }: Config): void {
  if (!mongodbUri || secretKey) return;
  throw new ConfigError(['BSVC_SECRET_KEY is required with MONGODB_URI: set it to a long random text and keep a copy']);
}

const FILE_NAME = 'secret.key';

/** Keys are made with 43 characters; what is shorter than this is a part of one, or was never one. */
const MIN_CHARACTERS = 32;

/** True if the data directory has the file, whole or not. */
export function hasMasterKey(dataDir: string): boolean {
  return existsSync(join(dataDir, FILE_NAME));
}

/**
 * A reader of the master key kept in the data directory. When there is none at first it makes one if `mayMake`, else it
 * throws 409 MASTER_KEY_MISSING: something is encrypted already. A file that cannot be read later, or is gone, changes
 * nothing: under another key nothing that is encrypted would open any more.
 */
export function openMasterKey(dataDir: string, mayMake: boolean): () => string {
  const path = join(dataDir, FILE_NAME);
  let known: string | null = null;
  return () => {
    if (known === null) {
      if (!mayMake && !hasMasterKey(dataDir)) throw masterKeyMissing(path);
      return (known = readOrCreateMasterKey(dataDir));
    }
    try {
      known = findKey(path) ?? known;
    } catch {
      // Without a directory, or a free file handle, the key that is known still opens everything.
    }
    return known;
  };
}

/**
 * The master key kept in the data directory, made on first use (mode 0600); processes that start at once agree on one.
 */
export function readOrCreateMasterKey(dataDir: string): string {
  const path = join(dataDir, FILE_NAME);
  const existing = findKey(path);
  if (existing) return existing;
  const draft = writeDraft(dataDir, randomToken(32));
  try {
    // Linked, not renamed: of several the first one wins.
    linkSync(draft, path);
    syncPathNow(dataDir);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
  } finally {
    rmSync(draft, { force: true });
  }
  return findKey(path)!;
}

function masterKeyMissing(path: string): Error {
  return conflict(
    'MASTER_KEY_MISSING',
    `${path} is missing, and what is stored was encrypted with the master key in it. Put a copy of the file back, or name its content in BSVC_SECRET_KEY; "bsvc restore" of a backup brings data and key.`,
  );
}

/** The master key kept in the data directory; null when there is none. */
export function findMasterKey(dataDir: string): string | null {
  return findKey(join(dataDir, FILE_NAME));
}

/**
 * Puts a new key in front of those in the data directory's file: it encrypts from now on, the others still open. 409
 * ROTATION_UNDER_WAY while another process does so: of two that read the same keys, the later would take away the
 * other's, and what that encrypted could not be opened any more.
 */
export function prependMasterKey(dataDir: string): void {
  const lock = join(dataDir, `${FILE_NAME}.lock`);
  try {
    writeFileSync(lock, '', { mode: 0o600, flag: 'wx' });
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
    throw conflict(
      'ROTATION_UNDER_WAY',
      `Another process is giving the data directory a new master key: try again. If there is none, one was killed in the middle: remove ${lock}`,
    );
  }
  try {
    replaceMasterKey(dataDir, `${randomToken(32)},${readOrCreateMasterKey(dataDir)}`);
  } finally {
    rmSync(lock, { force: true });
  }
}

/**
 * Puts another key, or list of keys, in the place of the data directory's own: what the present one encrypted opens no
 * more. One rename.
 */
export function replaceMasterKey(dataDir: string, key: string): void {
  renameSync(writeDraft(dataDir, key), join(dataDir, FILE_NAME));
  syncPathNow(dataDir);
}

/**
 * A file aside, which gets its name when its whole content is on the disk: a power cut must not take a key from what it
 * has encrypted.
 */
function writeDraft(dataDir: string, key: string): string {
  mkdirSync(dataDir, { recursive: true, mode: 0o700 });
  const draft = join(dataDir, `${FILE_NAME}.${process.pid}.${randomToken(6)}`);
  writeFileSync(draft, `${key}\n`, { mode: 0o600, flag: 'wx', flush: true });
  return draft;
}

/** The file's keys, or null when there is no file; 409 MASTER_KEY_DAMAGED for one that is empty or cut short. */
function findKey(path: string): string | null {
  let text: string;
  try {
    text = readTextFileSync(path).trim();
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null;
    throw error;
  }
  if (text.split(',').every((key) => key.trim().length >= MIN_CHARACTERS)) return text;
  throw conflict(
    'MASTER_KEY_DAMAGED',
    `${path} is not a whole master key. Put a copy of the file back; if nothing was ever stored with it, remove it and a new one is made.`,
  );
}
