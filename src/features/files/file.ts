import { randomUUID } from 'node:crypto';
import { Binary, type ObjectId } from 'bson';
import { DamagedFileError, readChecked, type StoredBytes } from '../../platform/object-store/block-sums.js';
import type { App } from '../../app.js';
import { unavailable, missing, type AppError } from '../../errors.js';
import type { LocalStore } from '../../platform/object-store/local-store.js';
import type { S3Store } from '../../platform/object-store/s3-store.js';
import type { Project } from '../projects/project.js';
import { openBucket } from './bucket/project-bucket.js';
import { storeOf } from '../../platform/database/database.js';
import { isObjectKey } from '../../platform/object-store/object-store.js';
import { FILES } from '../documents/store/attached-files.js';
import { cacheRegion } from '../../platform/cache.js';

/**
 * A file and the upload that brings it (rest-api.md 3.2).
 *
 * | state | means |
 * |---|---|
 * | requested | the upload may begin; no bytes have arrived |
 * | stored | the bytes are stored and not confirmed yet |
 * | confirmed | the file: charged to the quota, served, deletable |
 * | deleted | no longer visible; `settled` once its bytes are removed and its charge is given back |
 *
 * A record is written before its bytes and removed after them, so no bytes are stored without a record.
 */
export interface FileRecord {
  _id: ObjectId;
  projectId: ObjectId;
  /** `<project id>/<uuid>_<name>`: unique, never used again. */
  path: string;
  /** The name given by the client, made safe. */
  name: string;
  contentType: string;
  /** Bytes the client announced; null for a multipart upload, which announces none. */
  declaredSize: number | null;
  /** Bytes stored, fixed when the state becomes `stored`. */
  size: number | null;
  /** Checksums of the bytes (`BlockSums`), fixed with `size`; of files in the data directory. */
  sums?: Binary;
  state: 'requested' | 'stored' | 'confirmed' | 'deleted';
  place: FilePlace;
  /**
   * The one object in that place that holds the bytes, fixed when they are stored; absent on older records = `path`.
   */
  object?: string;
  /**
   * The objects that were begun for this upload, `object` included; those that lost are removed with the file or by the
   * sweep.
   */
  objects?: string[];
  /**
   * The object that the signed address of a bucket writes to: never `object`, since only the bucket sees when the
   * last writer is done.
   */
  uploadTo?: string;
  /** Which bytes of `uploadTo` the bucket is to copy: its name for them (ETag). */
  version?: string;
  /** The end user who was signed in when it was uploaded, with whichever key. */
  uploadedBy?: string;
  /** The document whose file it is: read and written by those who may read and change that (writes.md 5). */
  attachedTo?: FileDocument;
  /** Read by links that the secret key asks for, and by no public address. */
  isPrivate?: true;
  /** Which of the project's own buckets. */
  bucketId?: string;
  createdAt: Date;
  confirmedAt?: Date;
  deletedAt?: Date;
  settled?: boolean;
  /** Tries to remove the bytes that failed. */
  failures?: number;
  /**
   * The sweep's next look at this record: an unconfirmed upload is given up, a deleted file settled, a settled record
   * forgotten. On a confirmed file only while it may have left objects behind.
   */
  dueAt?: Date;
}

/** A document that has files. */
export interface FileDocument {
  collectionId: ObjectId;
  id: ObjectId;
  /**
   * When it was stored: one that comes later under the same id is another one, to which the file does not belong.
   */
  since: Date | null;
}

/** True if a document that was stored at that moment is the one whose file it is. */
export function isSince({ since }: FileDocument, createdAt: Date | null | undefined): boolean {
  return (createdAt?.getTime() ?? null) === (since?.getTime() ?? null);
}

/** Readers of a file: anyone with its URL, readers of its document with a link, or only secret keys. */
export type Visibility = 'public' | 'attached' | 'private';

export function visibilityOf({ attachedTo, isPrivate }: Pick<FileRecord, 'attachedTo' | 'isPrivate'>): Visibility {
  if (attachedTo) return 'attached';
  return isPrivate ? 'private' : 'public';
}

/** `local` and `s3` are the service's own storage, `external` is the project's bucket. */
export type FilePlace = 'local' | 's3' | 'external';

export type Provider = 'internal' | 'external';

/** The key of the object that holds a file's bytes. */
export function objectOf(file: Pick<FileRecord, 'object' | 'path'>): string {
  return file.object ?? file.path;
}

/** What a record notes of its bytes. A bucket keeps checksums of its own. */
export function storedAs({ place }: Pick<FileRecord, 'place'>, { size, sums }: StoredBytes) {
  return place === 'local' ? { size, sums: new Binary(sums) } : { size };
}

/** The other way round, of a file in the data directory whose bytes are stored. */
export function storedBytesOf({ size, sums }: Pick<FileRecord, 'size' | 'sums'>): StoredBytes {
  return { size: size!, sums: Buffer.from(sums!.buffer) };
}

const OBJECT_OF_PATH = /^(.+)\.[0-9a-f]{32}$/;

/** A key for one more object of an upload, never used before; its file is known by it (pathsOf). */
export function newObject(path: string): string {
  return `${path}.${randomUUID().replaceAll('-', '')}`;
}

/** The paths, one of which is the file's that an object belongs to. */
export function pathsOf(object: string): string[] {
  const path = OBJECT_OF_PATH.exec(object)?.[1];
  return path === undefined ? [object] : [object, path];
}

/** The name of an upload's storage in replies. */
export function providerOf(place: FilePlace): Provider {
  return place === 'external' ? 'external' : 'internal';
}

/** The part of a write that deletes a file; its bytes and its charge are removed afterwards. */
export function deletion(at: Date) {
  return { state: 'deleted' as const, deletedAt: at, settled: false, dueAt: at };
}

/** After this time without a confirmation an upload is given up (decisions.md 6). */
export const UNCONFIRMED_MS = 60 * 60 * 1000;
/**
 * The time for which a signed address takes its upload: well within UNCONFIRMED_MS, so that nothing arrives after the
 * sweep.
 */
export const SIGNED_URL_MS = 15 * 60 * 1000;

/** Bytes by which an upload may differ from its declared size (rest-api.md 3.2). */
export const MAX_DRIFT_BYTES = 64;

/** True if bytes are as many as declared but for the drift that is taken. */
export const isNearly = (bytes: number, declared: number): boolean => Math.abs(bytes - declared) <= MAX_DRIFT_BYTES;

/** The mark of a link for operators, who see the files of trashed documents. */
export const TRASH_TOO = 'trash';

/**
 * The bytes of a file in the data directory, all or those of a range, each part compared with its checksum before it is
 * given out. Throws DamagedFileError for what is not as it was stored, or missing.
 */
export async function* readFileBytes(
  app: Pick<App, 'files'>,
  file: Pick<FileRecord, 'object' | 'path' | 'size' | 'sums'>,
  range?: { start: number; end: number },
): AsyncGenerator<Buffer, void, undefined> {
  const opened = await app.files.local.openFile(objectOf(file));
  if (!opened) throw new DamagedFileError(objectOf(file), 'is missing');
  yield* readChecked(opened, objectOf(file), storedBytesOf(file), range);
}

/** The place for a new file of the project: its own bucket, else the service's bucket, else the data directory. */
export function choosePlace(app: Pick<App, 'files'>, project: Project): FilePlace {
  if (project.storage?.bucket) return 'external';
  return app.files.hasBucket ? 's3' : 'local';
}

/**
 * The store that holds a file; null when it is in a bucket that the project no longer names. 503 when the service's own
 * bucket is no longer configured.
 */
export async function openPlace(
  app: Pick<App, 'files' | 'secrets'>,
  project: Pick<Project, '_id' | 'storage'> | null,
  file: Pick<FileRecord, 'place' | 'bucketId'>,
): Promise<LocalStore | S3Store | null> {
  if (file.place === 'local') return app.files.local;
  if (file.place === 'external') {
    const bucket = project?.storage?.bucket;
    return project && bucket && bucket.id === file.bucketId ? openBucket(app, project, bucket) : null;
  }
  const store = await app.files.openPlatformBucket();
  if (!store) throw unavailable('STORAGE_UNAVAILABLE', 'The bucket of this file is no longer configured');
  return store;
}

/** Local files by the path that they are served at. */
export const SERVED_FILES = cacheRegion<FileRecord>('files');

export const fileStore = storeOf<FileRecord>(FILES);

/**
 * All records of a project, by the one index that no state change moves a record in: a scan meets each exactly once.
 */
export function filesOf(projectId: ObjectId): { path: { $gte: string; $lt: string } } {
  const hex = projectId.toHexString();
  return { path: { $gte: `${hex}/`, $lt: `${hex}0` } };
}

/** The project's file at `path` unless it is deleted; null for another project's and for text that is not a path. */
export async function findFile(app: Pick<App, 'db'>, projectId: ObjectId, path: string): Promise<FileRecord | null> {
  if (!isObjectKey(path) || !path.startsWith(`${projectId.toHexString()}/`)) return null;
  const file = await fileStore(app).findOne({ path });
  return file && file.state !== 'deleted' ? file : null;
}

/** 404, without telling whether the path ever existed. */
export function fileMissing(): AppError {
  return missing('FILE_NOT_FOUND', 'There is no file at this path');
}

/** A media type that can be sent as a header, with up to four parameters such as `charset=utf-8` or `codecs="opus"`. */
export const CONTENT_TYPE =
  /^[A-Za-z0-9][\w.+-]{0,60}\/[A-Za-z0-9][\w.+-]{0,100}( ?; ?[A-Za-z][\w-]{0,30}=([\w.+:-]{1,60}|"[\w .,+:-]{1,60}")){0,4}$/;

export const UNKNOWN_TYPE = 'application/octet-stream';

export function isContentType(text: string): boolean {
  return CONTENT_TYPE.test(text);
}

const SHOWN =
  /^(image\/(png|jpeg|gif|webp|avif|apng|bmp|tiff|heic|heif|x-icon|vnd\.microsoft\.icon)|audio\/[\w.+-]+|video\/[\w.+-]+|application\/pdf|text\/plain)$/;

/**
 * True if a browser may show files of this type; all others, above all those that carry scripts (html, svg, xml), are
 * only saved (decisions.md 6).
 */
export function isShownInline(contentType: string): boolean {
  return SHOWN.test(contentType.split(';')[0]!.trim().toLowerCase());
}
