import type { App } from '../../../app.js';
import { conflict, forbidden, invalid } from '../../../errors.js';
import { findLimit, findUserShare } from '../../plans/plan-limits.js';
import type { Project } from '../../projects/project.js';
import { shareUsedUp } from '../../quota/user-share.js';
import {
  providerOf,
  UNCONFIRMED_MS,
  fileMissing,
  fileStore,
  isShownInline,
  isNearly,
  newObject,
  openPlace,
  findFile,
  type FileRecord,
} from '../file.js';
import { chargeBytes, usageLine, usagesOf, usageStore, type UsageKey } from '../usage-store.js';
import { FILES } from '../../documents/store/attached-files.js';
import { fileTooLarge } from '../../../http/requests/multipart.js';
import type { S3Store } from '../../../platform/object-store/s3-store.js';
import { removeObjects } from './reap-files.js';

/**
 * After this time nothing that was on its way to another object of a confirmed upload arrives any more: no request and
 * no signed address lives so long.
 */
const LATE_MS = UNCONFIRMED_MS;

/**
 * Turns a stored file into a confirmed one and charges it to the quota in one transaction, so exactly once however
 * often and from wherever it is called. 403 QUOTA_EXCEEDED, 404 when deleted since.
 */
export async function confirmFile(app: App, project: Project, begun: BegunFile): Promise<FileRecord>;
/** The same for the bytes in `object` alone: null when others have been chosen. */
export async function confirmFile(
  app: App,
  project: Project,
  begun: BegunFile,
  object: string,
): Promise<FileRecord | null>;
export async function confirmFile(
  app: App,
  project: Project,
  begun: BegunFile,
  object?: string,
): Promise<FileRecord | null> {
  const confirmedAt = new Date(app.clock.now());
  return app.db.transaction((tx) => {
    const file = tx.get<FileRecord>(FILES, begun._id);
    if (!file || file.state === 'deleted') throw fileMissing();
    if (file.state === 'confirmed') return file;
    if (object !== undefined && file.object !== object) return null;
    if (file.state === 'requested') throw notReady();
    for (const usage of providerOf(file.place) === 'internal' ? usagesOf(file) : []) {
      if (!chargeBytes(tx, usage, file.size!, limitOf(project, usage))) throw quotaExceeded(usage);
    }
    const { dueAt: _, ...stored } = file;
    // Others that were begun are removed when nothing arrives there any more.
    const isAlone = (file.objects?.length ?? 0) < 2;
    const dueAt = new Date(confirmedAt.getTime() + LATE_MS);
    const confirmed = { ...stored, state: 'confirmed' as const, confirmedAt, ...(!isAlone && { dueAt }) };
    tx.put(FILES, confirmed);
    return confirmed;
  }, usageLine(begun));
}

type BegunFile = Pick<FileRecord, '_id' | 'projectId'>;

function limitOf(project: Project, { projectId }: UsageKey): number | null {
  return projectId ? findUserShare(project, 'storage') : findLimit(project, 'storage');
}

/** 409: the bytes are not there yet; the client may ask again shortly. */
function notReady(): Error {
  return conflict('UPLOAD_NOT_READY', 'The upload has not arrived yet: send the bytes first, or try again shortly', {
    retryAfterSeconds: 2,
  });
}

function quotaExceeded({ projectId }: UsageKey): Error {
  if (projectId) return shareUsedUp('storage');
  return forbidden('QUOTA_EXCEEDED', 'The storage quota of the project is used up. Delete files, or upgrade the plan');
}

/** 403 QUOTA_EXCEEDED when `bytes` more cannot fit now; what counts in the end is the charge. */
export async function requireRoom(app: App, project: Project, bytes: number, uploadedBy: string | null): Promise<void> {
  for (const key of usagesOf({ projectId: project._id, ...(uploadedBy !== null && { uploadedBy }) })) {
    const limit = limitOf(project, key);
    if (limit === null) continue;
    const usage = await usageStore(app).findOne({ _id: key._id });
    if ((usage?.bytes ?? 0) + bytes > limit) throw quotaExceeded(key);
  }
}

/** The number of times the bytes of a bucket may be exchanged while they are being confirmed. */
const MAX_ATTEMPTS = 5;

/**
 * Confirms an upload whose bytes were sent to its signed address, and charges it; repeating it changes nothing. From
 * then on its bytes are one object that no signed address writes to. 404 for an unknown path, 409 UPLOAD_NOT_READY
 * while there are no bytes, 400 UPLOAD_SIZE_MISMATCH when there are others than announced, 413, 403 QUOTA_EXCEEDED. In
 * all these cases what was sent is kept until the sweep. `mayConfirm` throws where the caller may not.
 */
export async function confirmUpload(
  app: App,
  project: Project,
  { filePath, size }: { filePath: string; size: number },
  mayConfirm: (file: FileRecord) => Promise<void> = () => Promise.resolve(),
): Promise<FileRecord> {
  for (let attempt = 1; attempt <= MAX_ATTEMPTS; attempt++) {
    const file = await findFile(app, project._id, filePath);
    if (!file) throw fileMissing();
    await mayConfirm(file);
    if (file.state === 'confirmed') return file;
    const store = await openPlace(app, project, file);
    if (!store) throw fileMissing();
    if (file.state === 'stored' && file.size !== null && (store.kind === 'local' || file.object !== undefined)) {
      checkSize(app, file, file.size, size);
      if (store.kind === 'local') return confirmFile(app, project, file);
      const confirmed = await confirmInBucket(app, project, store, file);
      if (confirmed) return confirmed;
    } else if (store.kind === 'local') {
      throw notReady();
    } else {
      await chooseBytes(app, store, file, size);
    }
  }
  // Sent again and again: what is there now may be confirmed when that is done.
  throw notReady();
}

/**
 * Chooses the bytes at the signed address as those to confirm: the first to note them decides, whatever is sent
 * afterwards.
 */
async function chooseBytes(app: App, store: S3Store, file: FileRecord, announced: number): Promise<void> {
  // Multipart: the bytes are still on their way from this service.
  if (file.object !== undefined) throw notReady();
  const found = await store.findVersion(sourceOf(file));
  if (!found) return requireChanged(app, file);
  checkSize(app, file, found.size, announced);
  // The path itself is the object, unless a signed address leads to it, or an earlier choice may still be on its way
  // there.
  const isFree = file.uploadTo !== undefined && file.objects?.length === 1;
  const object = isFree ? file.path : newObject(file.path);
  await fileStore(app).updateOne(
    { _id: file._id, state: file.state, object: { $exists: false } },
    {
      $set: { state: 'stored', size: found.size, object, ...(found.version !== null && { version: found.version }) },
      $addToSet: { objects: { $each: [sourceOf(file), object] } },
    },
  );
}

/** A concurrent confirmation may have moved the bytes; 409 UPLOAD_NOT_READY if there was none. */
async function requireChanged(app: App, { _id, state }: FileRecord): Promise<void> {
  if (await fileStore(app).findOne({ _id, state, object: { $exists: false } })) throw notReady();
}

/**
 * Copies the chosen bytes to their object, confirms them, and removes what else there is. Null when they were exchanged
 * before they were copied.
 */
async function confirmInBucket(
  app: App,
  project: Project,
  store: S3Store,
  file: FileRecord,
): Promise<FileRecord | null> {
  const object = file.object!;
  // A multipart upload was written to its object by the service.
  const isSigned = file.objects !== undefined;
  if (isSigned && !(await isCopied(store, file, object))) {
    await fileStore(app).updateOne(
      { _id: file._id, state: 'stored', object },
      { $set: { state: 'requested', size: null }, $unset: { object: '', version: '' } },
    );
    return null;
  }
  const confirmed = await confirmFile(app, project, file, object);
  if (confirmed && isSigned) await removeObjects(app, store, confirmed);
  return confirmed;
}

async function isCopied(store: S3Store, { version, ...file }: FileRecord, object: string): Promise<boolean> {
  const { contentType } = file;
  const options = { contentType, attachment: !isShownInline(contentType), version: version ?? null };
  if (await store.copyVersion(sourceOf(file), object, options)) return true;
  // Another confirmation may have copied them before they were exchanged or removed: only the chosen bytes are ever
  // copied there.
  return (await store.findVersion(object)) !== null;
}

const sourceOf = (file: Pick<FileRecord, 'uploadTo' | 'path'>): string => file.uploadTo ?? file.path;

function checkSize(app: App, file: FileRecord, stored: number, announced: number): void {
  for (const said of [announced, file.declaredSize ?? announced]) {
    if (!isNearly(stored, said)) throw sizeMismatch(stored, said);
  }
  const { maxFileBytes } = app.config;
  if (providerOf(file.place) === 'internal' && stored > maxFileBytes) throw fileTooLarge(maxFileBytes);
}

function sizeMismatch(stored: number, announced: number): Error {
  return invalid('UPLOAD_SIZE_MISMATCH', `The stored file has ${stored} bytes, not ${announced}: upload it again`);
}
