import type { App } from '../../../app.js';
import { overLimit } from '../../../errors.js';
import { fileTooLarge } from '../../../http/requests/multipart.js';
import { findLimit, findUserShare } from '../../plans/plan-limits.js';
import type { Project } from '../../projects/project.js';
import { insertServiceRecord } from '../../quota/insert-service-record.js';
import { requireRoom } from './confirm-file.js';
import { newObject, providerOf, SIGNED_URL_MS, choosePlace, openPlace, fileStore } from '../file.js';
import { newFile, type SeenBy } from './new-file.js';

export interface UploadGrant {
  signedUrl: string;
  filePath: string;
}

/**
 * Uploads beyond the quota that may wait for their confirmation, in files of the largest size: room for clients that
 * give up and begin again.
 */
const SPARE_UPLOADS = 20;

/**
 * Gives out an address that takes the bytes of one file. Nothing is charged yet. 413 FILE_TOO_LARGE, 403
 * QUOTA_EXCEEDED, 429 UPLOADS_PENDING; the project's own bucket has no such limits.
 */
export async function requestUpload(
  app: App,
  project: Project,
  { filename, contentType, size }: { filename: string; contentType: string; size: number },
  { serviceUrl, uploadedBy, seenBy = {} }: { serviceUrl: string; uploadedBy: string | null; seenBy?: SeenBy },
): Promise<UploadGrant> {
  const place = choosePlace(app, project);
  if (providerOf(place) === 'internal') {
    if (size > app.config.maxFileBytes) throw fileTooLarge(app.config.maxFileBytes);
    await requireRoom(app, project, size, uploadedBy);
    await requireFewPending(app, project, size, uploadedBy);
  }
  const upload = { name: filename, contentType, declaredSize: size, place, uploadedBy, seenBy };
  const file = newFile(project, upload, app.clock.now());
  const store = (await openPlace(app, project, file))!;
  const grant = { contentType, size, expiresInMs: SIGNED_URL_MS };
  // What is sent to the service itself it stores where it likes; a bucket stores it where the address says, as long as
  // the address is good.
  const uploadTo = store.kind === 's3' ? newObject(file.path) : null;
  const signedUrl = await store.signPutUrl(uploadTo ?? file.path, grant, serviceUrl);
  await insertServiceRecord(app, 'files', { ...file, ...(uploadTo !== null && { uploadTo, objects: [uploadTo] }) });
  return { signedUrl, filePath: file.path };
}

/**
 * Unconfirmed uploads are not charged but take room: without a bound they would fill the disk. One user has the same
 * share of the bound as of the quota.
 */
async function requireFewPending(app: App, project: Project, size: number, uploadedBy: string | null): Promise<void> {
  const limit = findLimit(project, 'storage');
  if (limit === null) return;
  const pending = await fileStore(app)
    .aggregate<{ _id: boolean; bytes: number }>([
      { $match: { projectId: project._id, state: { $in: ['requested', 'stored'] } } },
      { $group: { _id: { $eq: ['$uploadedBy', uploadedBy] }, bytes: { $sum: '$declaredSize' } } },
    ])
    .toArray();
  const spare = SPARE_UPLOADS * app.config.maxFileBytes;
  const own = pending.filter(({ _id }) => _id);
  const share = uploadedBy === null ? null : findUserShare(project, 'storage');
  const fits = (among: typeof pending, most: number): boolean =>
    among.reduce((sum, { bytes }) => sum + bytes, size) <= most;
  if (fits(pending, limit + spare) && (share === null || fits(own, share + (spare * share) / limit))) return;
  throw overLimit('UPLOADS_PENDING', 'Too many unconfirmed uploads. Confirm them, or try again later', {
    retryAfterSeconds: 60,
  });
}
