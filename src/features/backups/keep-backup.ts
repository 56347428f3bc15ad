import { createReadStream, createWriteStream } from 'node:fs';
import { open, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import type { App } from '../../app.js';
import { inWorkFolder } from '../../platform/processes/work-folder.js';
import { storeOf } from '../../platform/database/database.js';
import { findMasterKey } from '../../platform/secrets/master-key.js';
import {
  createDecryptStream,
  createEncryptStream,
  isEncrypted,
  type EncryptionSecret,
} from '../../platform/secrets/encrypted-stream.js';
import { backUp, type BackupReport } from '../store-copies/back-up.js';
import { readArchive } from '../store-copies/backup-archive.js';
import { fetchBackup, openBackupPlace, type BackupPlace } from './backup-place.js';
import { backupName, listSuperseded, type KeepRule } from './backup-schedule.js';

/** A backup that was stored in its place and read back. */
export interface BackupRecord {
  _id: string;
  place: string;
  at: Date;
  bytes: number;
  documents: number;
  files: number;
  /** Uploaded files that were damaged or missing at the time of the backup. */
  damagedFiles?: number;
  /** When it was last read back; absent: when it was made. */
  checkedAt?: Date;
  /** What was wrong with it then; absent: nothing. */
  fault?: string;
}

export const SERVICE_RECORDS = 100;

/** Records of backups that were read back; what is in the place itself is asked of the place. */
export const backupStore = storeOf<BackupRecord>('backups');

export interface KeptReport extends BackupReport {
  /** Names of the older ones that the rule no longer keeps; they were removed. */
  removed: string[];
}

/**
 * Makes a backup, encrypts it, stores it in the place, reads it back to its end, and then removes what the rule no
 * longer keeps. A new one that cannot be read back is removed and nothing else. When uploaded files are damaged, all
 * older ones are kept: they may hold these files whole. Throws what failed; harmless to repeat.
 */
export async function keepBackup(
  app: App,
  place: BackupPlace,
  rule: KeepRule,
  options: { stop: AbortSignal; onProgress: (documents: number, files: number) => void },
): Promise<KeptReport> {
  const at = new Date(app.clock.now());
  const name = backupName(at);
  return inWorkFolder(async (dir) => {
    const plain = join(dir, 'plain');
    const encrypted = join(dir, 'encrypted');
    const report = await backUp(app, plain, options);
    await pipeline(
      createReadStream(plain),
      await createEncryptStream(encryptionSecret(app)),
      createWriteStream(encrypted, { mode: 0o600 }),
      { signal: options.stop },
    );
    await rm(plain);
    await place.put(name, encrypted);
    await rm(encrypted);
    try {
      await verifyKept(app, place, name);
    } catch (error) {
      // It must not count as the newest: the rule would remove a good one for it.
      await place.remove(name).catch(() => undefined);
      throw error;
    }
    const bytes = await sizeOf(place, name);
    const { documents, files, damagedFiles } = report;
    const record = {
      ...{ _id: `${place.address}/${name}`, place: place.address, at, bytes, documents, files },
      ...(damagedFiles > 0 && { damagedFiles }),
    };
    await backupStore(app).replaceOne({ _id: record._id }, record, { upsert: true });
    const removed = damagedFiles > 0 ? [] : await removeSuperseded(place, rule);
    await forgetOldRecords(app);
    return { ...report, file: name, bytes, removed };
  });
}

/**
 * Reads a stored backup to its end: every byte is as it was encrypted, and the archive inside is whole. How many
 * documents and files it holds.
 */
export async function verifyKept(
  app: Pick<App, 'config'>,
  place: BackupPlace,
  name: string,
): Promise<{ documents: number; files: number }> {
  return inWorkFolder(async (dir) => {
    const [encrypted, plain] = [join(dir, 'encrypted'), join(dir, 'plain')];
    await fetchBackup(place, name, encrypted);
    await decryptFile(app, encrypted, plain);
    await rm(encrypted);
    const held = { documents: 0, files: 0 };
    for await (const line of readArchive(plain)) {
      if ('document' in line) held.documents++;
      if ('file' in line) held.files++;
    }
    return held;
  });
}

/** Writes the plain archive of a backup file, encrypted or not, to `path`. */
export async function decryptFile(app: Pick<App, 'config'>, from: string, path: string): Promise<void> {
  const opening = (await isEncryptedFile(from)) ? [createDecryptStream((kind) => findSecrets(app, kind))] : [];
  await pipeline([createReadStream(from), ...opening, createWriteStream(path, { mode: 0o600 })]);
}

/** True for a file that keepBackup has encrypted. */
export async function isEncryptedFile(path: string): Promise<boolean> {
  const handle = await open(path);
  try {
    const { buffer, bytesRead } = await handle.read(Buffer.alloc(64), 0, 64, 0);
    return isEncrypted(buffer.subarray(0, bytesRead));
  } finally {
    await handle.close();
  }
}

/** The place that the settings name, or null. */
export async function openConfiguredPlace(app: Pick<App, 'config'>): Promise<BackupPlace | null> {
  return app.config.backupTo === null ? null : openBackupPlace(app, app.config.backupTo);
}

function encryptionSecret(app: App): EncryptionSecret {
  return findSecrets(app, app.config.backupPassphrase === null ? 'master-key' : 'passphrase')[0]!;
}

/** The newest first: a master key that has been rotated still opens what it encrypted. */
function findSecrets({ config }: Pick<App, 'config'>, kind: EncryptionSecret['kind']): EncryptionSecret[] {
  const texts = kind === 'passphrase' ? config.backupPassphrase : (config.secretKey ?? findMasterKey(config.dataDir));
  if (texts === null) return [];
  const list = kind === 'passphrase' ? [texts] : texts.split(',');
  return list.map((text) => ({ kind, text: text.trim() }));
}

async function sizeOf(place: BackupPlace, name: string): Promise<number> {
  return (await place.list()).find((kept) => kept.name === name)?.bytes ?? 0;
}

async function removeSuperseded(place: BackupPlace, rule: KeepRule): Promise<string[]> {
  const superseded = listSuperseded(await place.list(), rule);
  for (const { name } of superseded) await place.remove(name);
  return superseded.map(({ name }) => name);
}

async function forgetOldRecords(app: App): Promise<void> {
  const old = await backupStore(app).find({}).sort({ at: -1, _id: -1 }).skip(SERVICE_RECORDS).toArray();
  for (const { _id } of old) await backupStore(app).deleteOne({ _id });
}
