import { randomUUID } from 'node:crypto';
import { ObjectId } from 'bson';
import { attachedPrefix } from '../../documents/store/attached-files.js';
import type { Project } from '../../projects/project.js';
import {
  UNCONFIRMED_MS,
  newObject,
  providerOf,
  SIGNED_URL_MS,
  choosePlace,
  openPlace,
  fileStore,
  type FileDocument,
  type FilePlace,
  type FileRecord,
} from '../file.js';
import type { App } from '../../../app.js';
import { overLimit } from '../../../errors.js';
import { fileTooLarge } from '../../../http/requests/multipart.js';
import { findLimit, findUserShare } from '../../plans/plan-limits.js';
import { insertServiceRecord } from '../../quota/insert-service-record.js';
import { requireRoom } from './confirm-upload.js';

const MAX_NAME_CHARACTERS = 100;
/** The path of an attached file has the ids of its document too. */
const MAX_ATTACHED_NAME_CHARACTERS = 80;

interface NewFile {
  name: string;
  contentType: string;
  declaredSize: number | null;
  place: FilePlace;
  /** The end user who uploads it; null for anonymous callers. */
  uploadedBy: string | null;
  seenBy: SeenBy;
}

/** Who reads a file, and its document where it has one. */
export interface SeenBy {
  attachedTo?: FileDocument;
  isPrivate?: true;
}

/** The record of an upload that begins now, at a path that was never used. */
export function newFile(
  project: Project,
  { name, contentType, declaredSize, place, uploadedBy, seenBy }: NewFile,
  nowMs: number,
): FileRecord {
  const { attachedTo } = seenBy;
  const most = attachedTo ? MAX_ATTACHED_NAME_CHARACTERS : MAX_NAME_CHARACTERS;
  const projectId = project._id.toHexString();
  const path = attachedTo
    ? attachedPrefix({
        projectId,
        collectionId: attachedTo.collectionId.toHexString(),
        id: attachedTo.id.toHexString(),
      }) + randomUUID().replaceAll('-', '')
    : `${projectId}/${randomUUID()}`;
  return {
    _id: new ObjectId(),
    projectId: project._id,
    path: `${path}_${nameInPath(name, most)}`,
    name: shownName(name, most),
    contentType,
    declaredSize,
    size: null,
    state: 'requested',
    place,
    ...(uploadedBy !== null && { uploadedBy }),
    ...(place === 'external' && { bucketId: project.storage!.bucket!.id }),
    ...seenBy,
    createdAt: new Date(nowMs),
    dueAt: new Date(nowMs + UNCONFIRMED_MS),
  };
}

/** The name of a file as people gave it, in any script: its last part, without control characters, cut to `most`. */
function shownName(given: string, most: number): string {
  const name = given
    .normalize('NFC')
    .split(/[/\\]/)
    .at(-1)!
    // Characters that control text, or turn its direction so that one extension looks like another.
    .replace(/[\p{Cc}\p{Cs}\p{Zl}\p{Zp}\p{Bidi_Control}\ufeff]/gu, '')
    .trim();
  return shorten(name, most) || 'file';
}

/**
 * The same in letters, digits, `.`, `_` and `-` for the path, its extension kept: `file` where nothing else is left of
 * it, `file.pdf` of a name in another script.
 */
function nameInPath(given: string, most: number): string {
  const safe = shownName(given, Infinity)
    .normalize('NFKD')
    .replace(/[\u0300-\u036f]/g, '')
    .replace(/[^A-Za-z0-9._-]+/g, '-')
    .replace(/\.{2,}/g, '.')
    .replace(/^-+(?=\.\w)/, 'file')
    .replace(/^[.-]+|[.-]+$/g, '');
  return shorten(safe, most) || 'file';
}

/** At most so many characters, the extension kept. */
function shorten(name: string, most: number): string {
  const characters = [...name];
  if (characters.length <= most) return name;
  const extension = /\.[A-Za-z0-9]{1,10}$/.exec(name)?.[0] ?? '';
  return (
    characters
      .slice(0, most - extension.length)
      .join('')
      .replace(/[.-]+$/, '') + extension
  );
}

interface UploadGrant {
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
