import { Readable } from 'node:stream';
import type { App } from '../../app.js';
import { conflict, missing } from '../../errors.js';
import { isEncrypted } from '../../platform/secrets/encrypted-stream.js';
import type { BackupPlace } from './backup-place.js';
import { timeOfBackup } from './backup-schedule.js';
import { openConfiguredPlace } from './keep-backup.js';

/** More than `isEncrypted` looks at. */
const HEAD_BYTES = 64;

/** The configured place for one named backup of it. 409 NO_BACKUP_PLACE; 404 BACKUP_NOT_FOUND for no name of ours. */
export async function requireBackupPlace(app: Pick<App, 'config'>, name: string): Promise<BackupPlace> {
  if (timeOfBackup(name) === null) {
    throw missing('BACKUP_NOT_FOUND', `There is no backup ${name}: the list of backups shows those there are`);
  }
  const place = await openConfiguredPlace(app);
  if (place) return place;
  throw conflict('NO_BACKUP_PLACE', 'Set BSVC_BACKUP_TO first: a directory, or s3://bucket/prefix');
}

/**
 * The bytes of a kept backup as they are stored: encrypted. One that is not, as a file copied there by hand, is 409
 * BACKUP_NOT_ENCRYPTED: it holds the hashes of passwords. The place is closed with the stream.
 */
export async function readBackup(app: Pick<App, 'config'>, name: string): Promise<{ bytes: number; body: Readable }> {
  const place = await requireBackupPlace(app, name);
  try {
    const { bytes, body: stored } = await place.read(name);
    const chunks = stored[Symbol.asyncIterator]() as AsyncIterableIterator<Buffer>;
    const head = await readHead(chunks);
    const body = Readable.from(following(head, chunks), { objectMode: false });
    body.once('close', () => {
      stored.destroy();
      place.close();
    });
    if (isEncrypted(head)) return { bytes, body };
    body.destroy();
    throw conflict('BACKUP_NOT_ENCRYPTED', `${name} is not encrypted: copy it on the machine that keeps it`);
  } catch (error) {
    place.close();
    throw error;
  }
}

async function readHead(chunks: AsyncIterator<Buffer>): Promise<Buffer> {
  let head: Buffer = Buffer.alloc(0);
  while (head.length < HEAD_BYTES) {
    const chunk = await chunks.next();
    if (chunk.done) break;
    head = Buffer.concat([head, chunk.value]);
  }
  return head;
}

async function* following(head: Buffer, rest: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
  yield head;
  yield* rest;
}
