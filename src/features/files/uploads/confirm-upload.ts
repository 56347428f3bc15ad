import type { App } from '../../../app.js';
import { invalid } from '../../../errors.js';
import { fileTooLarge } from '../../../http/requests/multipart.js';
import type { S3Store } from '../../../platform/object-store/s3-store.js';
import type { Project } from '../../projects/project.js';
import { confirmFile, notReady } from './confirm-file.js';
import { isShownInline } from '../content-type.js';
import {
  isNearly,
  newObject,
  providerOf,
  type FileRecord,
  openPlace,
  fileMissing,
  fileStore,
  findFile,
} from '../file.js';
import { removeObjects } from '../bucket/remove-objects.js';

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
