import { AppError, conflict, invalid, outOfSpace } from '../../errors.js';
import { open, rename, rm, statfs, type FileHandle } from 'node:fs/promises';
import { dirname, join, relative, resolve, sep } from 'node:path';
import { deserialize, type Document } from 'bson';
import type { IndexDescription } from 'mongodb';
import type { App } from '../../app.js';
import { replaceMasterKey } from '../../platform/secrets/master-key.js';
import type { EncryptedField } from '../../platform/secrets/reencrypt.js';
import {
  beginRestore,
  endRestore,
  isHalfRestored,
  requireRestoring,
  RESTORES,
  waitForOthers,
} from '../../platform/database/restore-mark.js';
import { makeDirectory, syncPath } from '../../platform/durable-files.js';
import { openSecretBox, type SecretBox } from '../../platform/secrets/secret-box.js';
import { deletion, pathsOf, fileStore } from '../files/file.js';
import { ENCRYPTED_PLACES } from './rotate-secrets.js';
import { listProjects } from '../projects/project-store.js';
import { damaged, readArchive, type ArchiveLine } from './backup-archive.js';
import { COPY_BATCH_BYTES, BATCH_DOCUMENTS, readExactly } from './copy-collection.js';
import { listFiles, localFilesDir } from './back-up.js';

const MOST_NAMED = 5;

/** 409 FILES_DAMAGED for a backup that was made, with uploaded files that are damaged or missing. */
export function filesDamaged(backup: string, count: number, damage: readonly string[]): AppError {
  const more = count > MOST_NAMED ? ` … and ${count - MOST_NAMED} more.` : '';
  return conflict(
    'FILES_DAMAGED',
    `${backup} was made, but ${count} uploaded ${count === 1 ? 'file is' : 'files are'} damaged: ${damage.slice(0, MOST_NAMED).join(' ')}${more} Restore them from an older backup, or delete them. "bsvc doctor --deep" lists all.`,
  );
}

/** True for errors about what is stored, which is as damaged at the next try. */
export function isDamageReport(error: unknown): boolean {
  return error instanceof AppError && (error.code === 'STORE_DAMAGED' || error.code === 'FILES_DAMAGED');
}

interface RestoreReport {
  documents: number;
  files: number;
  collections: number;
}

/**
 * Reads an archive from end to end before anything is changed. 400 BACKUP_DAMAGED; 409 for one of a newer version, or
 * whose encrypted secrets could not be opened with this configuration.
 */
export async function verifyBackup(
  app: App,
  path: string,
  knownMigrations: readonly string[],
): Promise<{ createdAt: string; version: string; documentBytes: number }> {
  let head: { createdAt: string; version: string } | null = null;
  let collection = '';
  let secrets: SecretBox | null = null;
  let documentBytes = 0;
  const encrypted = { opened: 0, foreign: 0 };
  // An objection to the backup counts only once its checksum is met: until then it may be a changed byte that
  // speaks.
  let refusal: unknown = null;
  const judge = (check: () => void): void => {
    try {
      check();
    } catch (error) {
      if (!(error instanceof AppError)) throw error;
      refusal ??= error;
    }
  };
  try {
    for await (const line of readArchive(path)) {
      if ('document' in line) documentBytes += Buffer.byteLength(line.document, 'base64');
      if ('format' in line) {
        head = line;
        judge(() => {
          rejectForeignKey(app, line.secretKey);
          secrets = openSecretBox(app.config.secretKey ?? line.secretKey!);
        });
      } else if ('collection' in line) {
        ({ collection } = line);
      } else if ('document' in line && collection === 'migrations') {
        judge(() => rejectNewer(line.document, knownMigrations));
      } else if ('document' in line && secrets) {
        for (const { fields } of ENCRYPTED_PLACES.filter((place) => place.collection === collection)) {
          for (const field of fields(deserialize(Buffer.from(line.document, 'base64')))) {
            encrypted[opensField(secrets, field) ? 'opened' : 'foreign']++;
          }
        }
      }
    }
  } catch (error) {
    if (error instanceof AppError || (error as { syscall?: unknown }).syscall !== undefined) throw error;
    throw damaged(path, 'it cannot be read to its end');
  }
  if (refusal !== null) throw refusal as Error;
  // A single one may have been lost before the backup was made.
  if (encrypted.foreign > 0 && encrypted.opened === 0) {
    throw conflict(
      'SECRET_KEY_FOREIGN',
      'Not one of the backup’s encrypted secrets can be opened: set BSVC_SECRET_KEY to the one that was set when it was made.',
    );
  }
  return { ...head!, documentBytes };
}

/**
 * 507 NO_SPACE when the documents cannot fit on the disk of the embedded store, even if it were empty: reported before
 * anything is changed.
 */
export async function requireSpace({ db, config: { dataDir } }: App, documentBytes: number): Promise<void> {
  const { fileBytes } = db.stats();
  // A MongoDB is elsewhere.
  if (fileBytes === undefined) return;
  const { bavail, bsize } = await statfs(dataDir);
  // The room of the present store is free for the restored one.
  const space = bavail * bsize + fileBytes;
  if (documentBytes <= space) return;
  const megabytes = (bytes: number): string => `${Math.ceil(bytes / 1024 / 1024)} MB`;
  throw outOfSpace(
    'NO_SPACE',
    `The backup holds ${megabytes(documentBytes)} of documents, and there is room for ${megabytes(space)} in ${dataDir}. Make room, or choose another --data-dir. Nothing was changed.`,
  );
}

function opensField(secrets: SecretBox, { encrypted, context }: EncryptedField): boolean {
  try {
    secrets.decrypt(encrypted, context);
    return true;
  } catch {
    return false;
  }
}

/**
 * True if there is nothing that a restore would destroy: no projects, or the half of what an interrupted restore has
 * brought.
 */
export async function isEmptyStore(app: App): Promise<boolean> {
  if (await isHalfRestored(app.db)) return true;
  const names = await app.db.listNames();
  return !names.includes('projects') || (await listProjects(app)).length === 0;
}

/**
 * Makes the store what the archive holds: what else is stored is removed. Check the archive with verifyBackup first.
 * Interrupted, it leaves a marked store that every other command refuses until it is restored again. 409
 * RESTORE_OVERTAKEN when another restore begins. Serving processes refuse everything until it has ended, and
 * have time to notice before anything is changed; afterwards they read the restored master key by themselves.
 */
export async function restoreBackup(
  app: App,
  path: string,
  options: { stop: AbortSignal; onProgress: (documents: number, files: number) => void },
): Promise<RestoreReport> {
  const restore = new Restore(app, await beginRestore(app.db));
  if (app.db.isShared()) await waitForOthers();
  for await (const line of readArchive(path)) {
    options.stop.throwIfAborted();
    await restore.take(line);
    options.onProgress(restore.report.documents, restore.report.files);
  }
  await restore.finish();
  return restore.report;
}

class Restore {
  readonly report: RestoreReport = { documents: 0, files: 0, collections: 0 };
  readonly #app: App;
  readonly #run: string;
  readonly #restored = new Set<string>();
  readonly #files = new Set<string>();
  /** Paths of files that were deleted while the backup was made. */
  readonly #gone: string[] = [];
  /** Directories that got files. */
  readonly #filled = new Set<string>();
  #collection = '';
  #batch: Document[] = [];
  #batchBytes = 0;
  #secretKey: string | null = null;
  #file: { handle: FileHandle; draft: string; path: string } | null = null;

  constructor(app: App, run: string) {
    this.#app = app;
    this.#run = run;
  }

  async take(line: ArchiveLine): Promise<void> {
    if ('document' in line) {
      const raw = Buffer.from(line.document, 'base64');
      if (this.#batch.length >= BATCH_DOCUMENTS || this.#batchBytes + raw.length > COPY_BATCH_BYTES) {
        await this.#store();
      }
      this.#batch.push(readExactly(raw));
      this.#batchBytes += raw.length;
      this.report.documents++;
      // Unlike write(), writeFile() goes on until every byte is taken, or fails.
    } else if ('bytes' in line) {
      await this.#file!.handle.writeFile(Buffer.from(line.bytes, 'base64'));
    } else {
      await this.#store();
      await this.#closeFile();
      if ('format' in line) this.#secretKey = line.secretKey;
      else if ('collection' in line) await this.#openCollection(line.collection, line.indexes);
      else if ('file' in line) await this.#openFile(line.file);
      else if ('gone' in line) this.#gone.push(line.gone);
    }
  }

  /** Removes what the archive does not name; the mark goes last, when all is there. */
  async finish(): Promise<void> {
    await requireRestoring(this.#app.db, this.#run);
    for (const name of await this.#app.db.listNames()) {
      if (!this.#restored.has(name) && name !== RESTORES) await this.#app.db.collection(name).drop();
    }
    for (const dir of this.#filled) await syncPath(dir);
    const deletedAt = new Date(this.#app.clock.now());
    for (const path of this.#gone) await fileStore(this.#app).updateOne({ path }, { $set: deletion(deletedAt) });
    await this.#removeOtherFiles();
    const { secretKey, dataDir } = this.#app.config;
    if (this.#secretKey !== null && !secretKey) replaceMasterKey(dataDir, this.#secretKey);
    await endRestore(this.#app.db, this.#run);
  }

  /**
   * Files that the archive did not bring and no restored record names: those of the store that was, and what
   * interrupted restores had begun.
   */
  async #removeOtherFiles(): Promise<void> {
    const root = localFilesDir(this.#app.config);
    for await (const file of listFiles(root)) {
      const path = relative(root, file).split(sep).join('/');
      const isKnown = this.#files.has(path) || (await fileStore(this.#app).findOne({ path: { $in: pathsOf(path) } }));
      if (!isKnown) await rm(file, { force: true });
    }
  }

  async #openCollection(name: string, indexes: IndexDescription[]): Promise<void> {
    this.#collection = name;
    this.#restored.add(name);
    this.report.collections++;
    await requireRestoring(this.#app.db, this.#run);
    const store = this.#app.db.collection(name);
    if ((await this.#app.db.listNames()).includes(name)) await store.drop();
    if (indexes.length > 0) await store.createIndexes(indexes);
  }

  async #store(): Promise<void> {
    if (this.#batch.length === 0) return;
    const batch = this.#batch;
    this.#batch = [];
    this.#batchBytes = 0;
    await requireRestoring(this.#app.db, this.#run);
    await this.#app.db
      .collection(this.#collection)
      .insertMany(batch, { ordered: true, bypassDocumentValidation: true });
  }

  async #openFile(name: string): Promise<void> {
    const root = localFilesDir(this.#app.config);
    const path = resolve(root, name);
    if (!path.startsWith(root + sep)) {
      throw invalid('BACKUP_DAMAGED', `The backup names a file outside its place: ${name}`);
    }
    await requireRestoring(this.#app.db, this.#run);
    await makeDirectory(dirname(path));
    const draft = join(dirname(path), `.restore-${process.pid}.part`);
    this.#file = { handle: await open(draft, 'w', 0o600), draft, path };
    this.#files.add(name);
    this.report.files++;
  }

  async #closeFile(): Promise<void> {
    if (!this.#file) return;
    const { handle, draft, path } = this.#file;
    this.#file = null;
    await handle.sync();
    await handle.close();
    await rename(draft, path).catch(async (error: unknown) => {
      await rm(draft, { force: true });
      throw error;
    });
    this.#filled.add(dirname(path));
  }
}

function rejectNewer(document: string, known: readonly string[]): void {
  const id = String(readExactly(Buffer.from(document, 'base64'))._id);
  if (known.includes(id)) return;
  throw conflict('BACKUP_NEWER', `The backup is of a newer version of bsvc (${id}): restore it with that one.`);
}

function rejectForeignKey({ config }: App, secretKey: string | null): void {
  if (secretKey === null && !config.secretKey) {
    throw conflict(
      'SECRET_KEY_MISSING',
      'The backup was encrypted with a master key of its own: set BSVC_SECRET_KEY to the one that was set when it was made.',
    );
  }
  const given = config.secretKey?.split(',').map((key) => key.trim());
  if (secretKey !== null && given && !given.includes(secretKey.split(',')[0]!)) {
    throw conflict(
      'SECRET_KEY_FOREIGN',
      'The backup was encrypted with the generated key of its data directory: add that directory’s secret.key to BSVC_SECRET_KEY, after a comma.',
    );
  }
}
