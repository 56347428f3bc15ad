import type { App } from '../../../app.js';
import type { IncomingFile } from '../../../http/requests/multipart.js';
import type { Project } from '../../projects/project.js';
import { keepRecord } from '../../quota/keep-record.js';
import { confirmFile, requireRoom } from './confirm-file.js';
import { isContentType, isShownInline, UNKNOWN_TYPE } from '../content-type.js';
import { discardUpload } from './discard-upload.js';
import { objectOf, providerOf, storedAs, type FileRecord } from '../file.js';
import { choosePlace, openPlace } from '../file-places.js';
import { fileStore } from '../file-store.js';
import { newFile, type SeenBy } from './new-file.js';

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
  // No address of its object is given out, so nobody else can write to it.
  const file: FileRecord = { ...begun, object: begun.path };
  const isInternal = providerOf(place) === 'internal';
  const store = (await openPlace(app, project, file))!;
  if (isInternal) await requireRoom(app, project, 1, uploadedBy);
  await keepRecord(app, 'files', file);
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
