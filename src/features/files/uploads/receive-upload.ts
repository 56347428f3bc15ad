import type { Context } from 'koa';
import type { App } from '../../../app.js';
import { receiveFile, type IncomingFile } from '../../../http/requests/multipart.js';
import type { Project } from '../../projects/project.js';
import {
  providerOf,
  choosePlace,
  objectOf,
  storedAs,
  deletion,
  openPlace,
  fileStore,
  isContentType,
  isShownInline,
  UNKNOWN_TYPE,
  type FileRecord,
} from '../file.js';
import { newFile, type SeenBy } from './request-upload.js';
import { insertServiceRecord } from '../../quota/insert-service-record.js';
import { confirmFile, requireRoom } from './confirm-upload.js';
import { reapFiles } from './reap-files.js';

/** What an upload is refused with, besides outages. */
export const UPLOAD_ERRORS = {
  400: ['FILE_MISSING', 'INVALID_BODY'],
  403: ['QUOTA_EXCEEDED'],
  404: ['FILE_NOT_FOUND'],
  413: ['FILE_TOO_LARGE'],
};

/**
 * Stores the one file of a form, of a size that its place allows; with the errors of receiveFile and uploadFile.
 * `seenBy` decides by the texts before the file whether it may be stored and who reads it.
 */
export function receiveUpload(
  app: App,
  ctx: Context,
  project: Project,
  uploadedBy: string | null,
  seenBy: (texts: ReadonlyMap<string, string>) => Promise<SeenBy>,
): Promise<FileRecord> {
  const isInternal = providerOf(choosePlace(app, project)) === 'internal';
  const maxBytes = isInternal ? app.config.maxFileBytes : null;
  const rules = { field: 'file', texts: ['attach', 'visibility'], maxBytes };
  return receiveFile(ctx, rules, async (incoming, texts) =>
    uploadFile(app, project, incoming, uploadedBy, await seenBy(texts)),
  );
}

/**
 * Stores a file as it streams in, charges and confirms it. A failure on the way, such as a body that breaks off, leaves
 * nothing behind. 403 QUOTA_EXCEEDED.
 */
export async function uploadFile(
  app: App,
  project: Project,
  { filename, contentType, body }: IncomingFile,
  uploadedBy: string | null,
  seenBy: SeenBy = {},
): Promise<FileRecord> {
  const place = choosePlace(app, project);
  const type = [contentType, contentType.split(';', 1)[0]!.trim()].find(isContentType) ?? UNKNOWN_TYPE;
  const upload = { name: filename, contentType: type, declaredSize: null, place, uploadedBy, seenBy };
  const begun = newFile(project, upload, app.clock.now());
  // The address of the object is never published, so there are no other writers.
  const file: FileRecord = { ...begun, object: begun.path };
  const isInternal = providerOf(place) === 'internal';
  const store = (await openPlace(app, project, file))!;
  if (isInternal) await requireRoom(app, project, 1, uploadedBy);
  await insertServiceRecord(app, 'files', file);
  try {
    const bytes = await store.put(objectOf(file), body, { contentType: type, attachment: !isShownInline(type) });
    await fileStore(app).updateOne(
      { _id: file._id, state: 'requested' },
      { $set: { state: 'stored', ...storedAs(file, bytes) } },
    );
    return await confirmFile(app, project, file);
  } catch (error) {
    body.destroy();
    await discardUpload(app, file);
    throw error;
  }
}

/**
 * Discards an unconfirmed upload and its bytes, including bytes that arrived after another process did so,
 * and refunds its charge. Does not change confirmed files. The sweep does the rest if this cannot be done
 * now.
 */
export async function discardUpload(app: App, file: FileRecord): Promise<void> {
  try {
    await fileStore(app).updateOne(
      { _id: file._id, state: { $in: ['requested', 'stored'] } },
      { $set: deletion(new Date(app.clock.now())) },
    );
    const now = await fileStore(app).findOne({ _id: file._id });
    if (now?.state !== 'confirmed') await reapFiles(app, file.projectId, [file]);
  } catch (error) {
    app.log.warn({ err: error, path: file.path }, 'a failed upload is left to the sweep');
  }
}
