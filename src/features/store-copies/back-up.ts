import { createWriteStream } from 'node:fs';
import { open, rm, stat, readdir } from 'node:fs/promises';
import { relative, sep, join, resolve } from 'node:path';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { createGzip } from 'node:zlib';
import type { App } from '../../app.js';
import { CHANGE_LOG } from '../changes/stored-log.js';
import type { Database } from '../../platform/database/database.js';
import { inChunks } from '../../platform/database/in-chunks.js';
import { placeFile } from '../../platform/durable-files.js';
import { BlockSums, DamagedFileError, findDifference } from '../../platform/object-store/block-sums.js';
import { inWorkFolder, nameDraft, removeLeftDrafts } from '../../platform/processes/work-folder.js';
import { readOrCreateMasterKey } from '../../platform/secrets/master-key.js';
import { RESTORES } from '../../platform/database/restore-mark.js';
import { VERSION } from '../../package.js';
import { type ArchiveLine, BACKUP_FORMAT, createArchiveWriter } from './backup-archive.js';
import { fileStore, objectOf, pathsOf, storedBytesOf } from '../files/file.js';
import { readIndexes, readRaw } from './copy-collection.js';
import { freezeWhole } from './move-store.js';
import type { Config } from '../../config/config.js';

/** The folder of the uploads that the service keeps itself. */
export const localFilesDir = ({ dataDir }: Pick<Config, 'dataDir'>): string => resolve(dataDir, 'files');

/** The paths of all files below a directory; none when there is no such directory. */
export async function* listFiles(dir: string): AsyncGenerator<string> {
  const entries = await readdir(dir, { withFileTypes: true }).catch(() => []);
  for (const entry of entries) {
    const path = join(dir, entry.name);
    if (entry.isDirectory()) yield* listFiles(path);
    else if (entry.isFile()) yield path;
  }
}

export interface BackupReport extends Contents {
  file: string;
  bytes: number;
}

interface Contents {
  documents: number;
  files: number;
  /** Uploaded files that are missing or not as they were stored. */
  damagedFiles: number;
  /** What is wrong with the first hundred of them. */
  damage: string[];
}

const MOST_DAMAGE = 100;
/** Names that backups get where none is given, with those of the schedule. */
const BACKUP = /^bsvc-[-\dTZ]+\.backup$/;

const PROGRESS_STEP = 500;
const FILE_CHUNK_BYTES = 48 * 1024;

/**
 * Writes everything stored into one file (mode 0600) while serving goes on: the documents as of one moment (embedded
 * engine) or collection by collection (MongoDB), then the uploaded files kept locally, and the master key when it was
 * generated. The file appears when it is whole and on the disk. 409 STORE_DAMAGED for damaged documents; damaged files
 * are in it as they are, and in the report.
 */
export async function backUp(
  app: App,
  path: string,
  options: { stop: AbortSignal; onProgress: (documents: number, files: number) => void },
): Promise<BackupReport> {
  await removeLeftDrafts(path, BACKUP);
  const draft = nameDraft(path);
  return inWorkFolder(async (workDir) => {
    const frozen = await freezeWhole(app, workDir, options.stop);
    try {
      const found = { documents: 0, files: 0, damagedFiles: 0, damage: [] };
      const lines = writeLines(app, frozen, found, options);
      const output = createWriteStream(draft, { flags: 'wx', mode: 0o600 });
      await pipeline(Readable.from(inChunks(lines)), createGzip(), output, { signal: options.stop });
      await placeFile(draft, path);
      return { file: path, bytes: (await stat(path)).size, ...found };
    } finally {
      await frozen.close();
      await rm(draft, { force: true });
    }
  });
}

function inOrder(names: string[]): string[] {
  return names.filter((name) => name !== RESTORES && name !== CHANGE_LOG).sort();
}

async function* writeLines(
  app: App,
  db: Database,
  found: Contents,
  { onProgress }: { onProgress: (documents: number, files: number) => void },
): AsyncGenerator<string> {
  const archive = createArchiveWriter();
  yield archive.write({
    format: BACKUP_FORMAT,
    version: VERSION,
    createdAt: new Date(app.clock.now()).toISOString(),
    secretKey: app.config.secretKey ? null : readOrCreateMasterKey(app.config.dataDir),
  });
  for (const name of inOrder(await db.listNames())) {
    const store = db.collection(name);
    yield archive.write({ collection: name, indexes: await readIndexes(store) });
    for await (const raw of readRaw(store, {})) {
      yield archive.write({ document: raw.toString('base64') });
      if (++found.documents % PROGRESS_STEP === 0) onProgress(found.documents, found.files);
    }
  }
  for await (const line of readLocalFiles(app, db, found)) {
    yield archive.write(line);
    onProgress(found.documents, found.files);
  }
  const { documents, files } = found;
  yield `${JSON.stringify({ end: { documents, files, sha256: archive.sha256() } })}\n`;
}

/** The files of the data directory, including unconfirmed ones, each compared with its record. */
async function* readLocalFiles(app: App, db: Database, found: Contents): AsyncGenerator<ArchiveLine> {
  const records = fileStore({ db });
  const root = localFilesDir(app.config);
  for await (const path of listFiles(root)) {
    const object = relative(root, path).split(sep).join('/');
    // It may have been deleted since it was listed.
    const file = await open(path).catch(() => null);
    if (!file) continue;
    const sums = new BlockSums();
    let size = 0;
    try {
      yield { file: object, size: (await file.stat()).size };
      for await (const chunk of file.createReadStream({ highWaterMark: FILE_CHUNK_BYTES, autoClose: false })) {
        sums.add(chunk as Buffer);
        size += (chunk as Buffer).length;
        yield { bytes: (chunk as Buffer).toString('base64') };
      }
    } catch (error) {
      // A sector that the disk cannot read must not prevent the backup of everything else.
      if ((error as NodeJS.ErrnoException).code !== 'EIO') throw error;
    } finally {
      await file.close();
    }
    found.files++;
    const record = await records.findOne({ path: { $in: pathsOf(object) }, state: 'confirmed', place: 'local' });
    if (record && objectOf(record) === object) {
      noteDamage(found, findDifference(object, storedBytesOf(record), { size, sums: sums.finish() }));
    }
  }
  for await (const record of records.find({ state: 'confirmed', place: 'local' })) {
    const damage = await findMissing(app, objectOf(record));
    if (damage === null) continue;
    // A file that was deleted after the moment of the documents is deleted by a restore too.
    if (await fileStore(app).findOne({ _id: record._id, state: 'confirmed' })) noteDamage(found, damage);
    else yield { gone: record.path };
  }
}

async function findMissing(app: App, object: string): Promise<DamagedFileError | null> {
  try {
    const size = await app.files.local.findSize(object);
    return size === null ? new DamagedFileError(object, 'is missing') : null;
  } catch (error) {
    if (error instanceof DamagedFileError) return error;
    throw error;
  }
}

function noteDamage(found: Contents, error: DamagedFileError | null): void {
  if (error === null) return;
  found.damagedFiles++;
  if (found.damage.length < MOST_DAMAGE) found.damage.push(`${error.message}.`);
}
