import { stat } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import type { App } from '../../app.js';
import { missing } from '../../errors.js';
import { fetchBackup, openBackupPlace } from './backup-place.js';
import { timeOfBackup } from './backup-schedule.js';
import { inWorkFolder } from '../../platform/processes/work-folder.js';
import { isEncryptedFile, openConfiguredPlace, decryptFile } from './keep-backup.js';

/** Stands for the newest backup of a place. */
const LATEST = 'latest';

/**
 * Runs `work` with the path of the plain archive that `named` stands for: a file, a name in the place of the settings,
 * `latest` there, or `s3://bucket/prefix/name`. 404 BACKUP_NOT_FOUND; an encrypted one needs its passphrase or master
 * key.
 */
export async function withPlainBackup<T>(
  app: Pick<App, 'config'>,
  named: string,
  cwd: string,
  work: (path: string) => Promise<T>,
): Promise<T> {
  const path = resolve(cwd, named);
  const isFile = !named.startsWith('s3://') && (await stat(path).catch(() => null));
  if (isFile && isFile.isDirectory()) {
    throw missing(
      'BACKUP_NOT_FOUND',
      `${path} is a directory, and a backup is a file: "bsvc backup --list --to ${named}" shows those in it`,
    );
  }
  if (isFile && !(await isEncryptedFile(path))) return work(path);
  return inWorkFolder(async (dir) => {
    const encrypted = isFile ? path : join(dir, 'encrypted');
    if (!isFile) await fetchNamed(app, named, encrypted);
    if (!(await isEncryptedFile(encrypted))) return work(encrypted);
    const plain = join(dir, 'plain');
    await decryptFile(app, encrypted, plain);
    return work(plain);
  });
}

async function fetchNamed(app: Pick<App, 'config'>, named: string, path: string): Promise<void> {
  const slash = named.lastIndexOf('/');
  const asked = named.slice(slash + 1);
  if (asked !== LATEST && timeOfBackup(asked) === null) throw noSuchFile(named);
  const isInBucket = named.startsWith('s3://');
  const place = isInBucket ? await openBackupPlace(app, named.slice(0, slash)) : await openConfiguredPlace(app);
  if (!place) throw noSuchFile(named);
  try {
    const name = asked === LATEST ? (await place.list()).at(-1)?.name : asked;
    if (name === undefined) throw missing('BACKUP_NOT_FOUND', `There are no backups in ${place.address}`);
    await fetchBackup(place, name, path);
  } finally {
    place.close();
  }
}

const noSuchFile = (named: string): Error =>
  missing('BACKUP_NOT_FOUND', `There is no file ${named}: give a file, or a name that "bsvc backup --list" shows`);
