import type { App } from '../../app.js';
import { invalid } from '../../errors.js';
import { fileTooLarge } from '../../http/multipart.js';
import type { Project } from '../projects/project.js';
import { confirmFile, notReady } from './confirm-file.js';
import { isShownInline } from './content-type.js';
import { providerOf, type FileRecord } from './file.js';
import { openPlace } from './file-places.js';
import { fileMissing, fileStore, findFile } from './file-store.js';
import type { UploadConfirmation } from './read-upload-input.js';

const MAX_DRIFT_BYTES = 64;

/**
 * Confirms an upload whose bytes were sent to its signed address, and charges it; repeating it changes nothing. 404 for an unknown path,
 * 409 UPLOAD_NOT_READY while there are no bytes, 400 UPLOAD_SIZE_MISMATCH when there are others than announced, 413, 403 QUOTA_EXCEEDED. In all these cases what was sent is kept until the sweep.
 */
export async function confirmUpload(
  app: App,
  project: Project,
  { filePath, size }: UploadConfirmation,
): Promise<FileRecord> {
  const file = await findFile(app, project._id, filePath);
  if (!file) throw fileMissing();
  if (file.state === 'confirmed') return file;
  const store = await openPlace(app, project, file);
  if (!store) throw fileMissing();
  const stored = await store.findSize(file.path);
  if (stored === null) throw notReady();
  for (const announced of [size, file.declaredSize ?? size]) {
    if (Math.abs(stored - announced) > MAX_DRIFT_BYTES) throw sizeMismatch(stored, announced);
  }
  const { maxFileBytes } = app.config;
  if (providerOf(file.place) === 'internal' && stored > maxFileBytes) throw fileTooLarge(maxFileBytes);
  if (!isShownInline(file.contentType)) await store.markAttachment(file.path, file.contentType);
  await fileStore(app).updateOne({ _id: file._id, state: 'requested' }, { $set: { state: 'stored', size: stored } });
  return confirmFile(app, project, file._id);
}

function sizeMismatch(stored: number, announced: number): Error {
  return invalid('UPLOAD_SIZE_MISMATCH', `The stored file has ${stored} bytes, not ${announced}: upload it again`);
}
