import { createWriteStream } from 'node:fs';
import { chmod, copyFile, open, readdir, rm, stat } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import type { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import type { App } from '../../app.js';
import { invalid, missing } from '../../errors.js';
import { makeDirectory, placeFile } from '../../platform/durable-files.js';
import type { S3Folder } from '../../platform/object-store/s3-folder.js';
import { timeOfBackup } from './backup-schedule.js';

/** A backup that is being written, and for how long nothing is written to one before it counts as left behind. */
const DRAFT = /^\.(.+)\.part$/;
export const DRAFT_MS = 60 * 60_000;

export interface KeptBackup {
  name: string;
  at: Date;
  bytes: number;
}

/** A place of backups: a directory, or a folder of a bucket. Only files with names of ours are seen. */
export interface BackupPlace {
  /** The settings' name of it: a path, or `s3://bucket/prefix`. */
  readonly address: string;
  /** The oldest first. */
  list(): Promise<KeptBackup[]>;
  /** Stores the file under the name; it appears when it is whole. */
  put(name: string, path: string): Promise<void>;
  /** The bytes of a stored backup; 404 BACKUP_NOT_FOUND. */
  read(name: string): Promise<{ bytes: number; body: Readable }>;
  remove(name: string): Promise<void>;
  close(): void;
}

/** Copies a stored backup to `path`; 404 BACKUP_NOT_FOUND. */
export async function fetchBackup(place: BackupPlace, name: string, path: string): Promise<void> {
  const { body } = await place.read(name);
  await pipeline(body, createWriteStream(path, { mode: 0o600 }));
}

/** An address as backups record it: a directory by its full path, seen from `cwd`. */
export function fullAddress(address: string, cwd = process.cwd()): string {
  return address.startsWith('s3://') ? address : resolve(cwd, address);
}

/**
 * Opens the place at an address. A bucket is opened with the account of `BSVC_S3_URL`; 400 INVALID_BACKUP_PLACE for
 * an address without a bucket, or without an account.
 */
export async function openBackupPlace(app: Pick<App, 'config'>, address: string): Promise<BackupPlace> {
  if (!address.startsWith('s3://')) return openDirectory(fullAddress(address));
  const [, bucket = '', prefix = ''] = /^s3:\/\/([^/]+)\/?(.*)$/.exec(address) ?? [];
  if (bucket === '') throw invalid('INVALID_BACKUP_PLACE', `${address} names no bucket: write s3://bucket/prefix`);
  const { s3 } = app.config;
  if (!s3) throw invalid('INVALID_BACKUP_PLACE', `${address} needs an account: set BSVC_S3_URL=s3://key:secret@host`);
  const { openS3Folder } = await import('../../platform/object-store/s3-folder.js');
  const folder = openS3Folder({ ...s3, bucket, publicUrl: null }, prefix.replace(/\/+$/, ''));
  return inFolder(address, folder);
}

function inFolder(address: string, folder: S3Folder): BackupPlace {
  return {
    address,
    async list() {
      const objects = await folder.list();
      return named(objects);
    },
    put: (name, path) => folder.put(name, path),
    async read(name) {
      const found = await folder.read(name);
      if (!found) throw notFound(name, address);
      return found;
    },
    remove: (name) => folder.remove(name),
    close: () => folder.close(),
  };
}

function openDirectory(dir: string): BackupPlace {
  return {
    address: dir,
    async list() {
      const names = await readdir(dir).catch(() => []);
      const files = await Promise.all(
        names.map(async (name) => ({ name, bytes: (await stat(join(dir, name)).catch(() => null))?.size ?? 0 })),
      );
      return named(files);
    },
    async put(name, path) {
      await makeDirectory(dir);
      await removeDrafts(dir);
      const draft = join(dir, `.${name}.part`);
      try {
        await copyFile(path, draft);
        await chmod(draft, 0o600);
        await placeFile(draft, join(dir, name));
      } finally {
        await rm(draft, { force: true });
      }
    },
    async read(name) {
      const handle = await open(join(dir, name)).catch((error: unknown) => {
        throw (error as NodeJS.ErrnoException).code === 'ENOENT' ? notFound(name, dir) : error;
      });
      return { bytes: (await handle.stat()).size, body: handle.createReadStream() };
    },
    remove: (name) => rm(join(dir, name), { force: true }),
    close: () => undefined,
  };
}

/**
 * Removes what a killed process has left of a backup, as much as the whole store each time. One that is being written
 * is younger; process ids say nothing, as the directory may be shared with other machines.
 */
async function removeDrafts(dir: string): Promise<void> {
  for (const file of await readdir(dir)) {
    const [, name] = DRAFT.exec(file) ?? [];
    if (name === undefined || timeOfBackup(name) === null) continue;
    const path = join(dir, file);
    const changed = (await stat(path).catch(() => null))?.mtimeMs ?? Infinity;
    if (Date.now() - changed > DRAFT_MS) await rm(path, { force: true }).catch(() => undefined);
  }
}

function named(files: readonly { name: string; bytes: number }[]): KeptBackup[] {
  return files
    .flatMap(({ name, bytes }) => {
      const at = timeOfBackup(name);
      return at ? [{ name, at, bytes }] : [];
    })
    .sort((a, b) => a.at.getTime() - b.at.getTime());
}

const notFound = (name: string, address: string): Error =>
  missing('BACKUP_NOT_FOUND', `There is no backup ${name} in ${address}: "bsvc backup --list" shows those there are`);
