import { Transform, type Readable } from 'node:stream';
import type { App } from '../../../app.js';
import { conflict, forbidden, invalid, overLimit } from '../../../errors.js';
import type { StoredBytes } from '../../../platform/object-store/block-sums.js';
import type { LocalGrant } from '../../../platform/object-store/local-store.js';
import { isObjectKey } from '../../../platform/object-store/object-store.js';
import {
  isShownInline,
  isNearly,
  MAX_DRIFT_BYTES,
  newObject,
  storedAs,
  fileMissing,
  fileStore,
  type FileRecord,
} from '../file.js';

export interface SignedUpload {
  path: string;
  query: URLSearchParams;
  contentType: string;
  /** The length that the client announced; null when it announced none. */
  contentLength: number | null;
  body: Readable;
}

/**
 * Takes the bytes that a signed address of the service itself was given out for (decisions.md 6): of the declared type,
 * and as many as declared or up to 64 more or fewer (rest-api.md 3.2). 403 UPLOAD_URL_INVALID when the address was not
 * given out or has expired, 400 for another type or size, 409 once the upload is confirmed. Until then it may be
 * repeated: each time makes an object of its own, which counts only by the one write that notes it, so bytes that are
 * late change nothing.
 */
export async function receiveSignedUpload(app: App, upload: SignedUpload): Promise<void> {
  const grant = isObjectKey(upload.path) ? app.files.local.readGrant(upload.path, upload.query) : null;
  if (!grant) {
    throw forbidden('UPLOAD_URL_INVALID', 'This upload URL is invalid or has expired. Request a new one');
  }
  requireDeclared(upload, grant);
  const file = await fileStore(app).findOne({ path: upload.path });
  if (!file || file.state === 'deleted') throw fileMissing();
  const object = await beginObject(app, file);
  const body = upload.body.pipe(limitToDeclared(grant.size));
  // The reader gets the error; it may occur before the first read.
  body.on('error', () => undefined);
  upload.body.once('close', () => {
    if (!upload.body.readableEnded) body.destroy(sizeMismatch(grant.size));
  });
  const options = { contentType: grant.contentType, attachment: !isShownInline(grant.contentType) };
  try {
    const bytes = await app.files.local.put(object, body, options);
    await takeObject(app, file, object, bytes);
  } catch (error) {
    await dropObject(app, file, object);
    throw error;
  }
}

/** Objects of one address that may be under way at once, those included that killed processes left. */
const MAX_OBJECTS = 16;

/**
 * Notes a new object before its first byte, so that whatever is stored is known of. 409 when the upload is confirmed,
 * 429 when too many are under way.
 */
async function beginObject(app: App, file: FileRecord): Promise<string> {
  const object = newObject(file.path);
  const { matchedCount } = await fileStore(app).updateOne(
    { _id: file._id, state: { $in: ['requested', 'stored'] }, [`objects.${MAX_OBJECTS - 1}`]: { $exists: false } },
    { $push: { objects: object } },
  );
  if (matchedCount === 1) return object;
  await requireOpen(app, file);
  throw overLimit('UPLOADS_PENDING', 'Too many uploads to this URL are in progress. Try again shortly', {
    retryAfterSeconds: 10,
  });
}

/**
 * Makes the object the one that holds the bytes, unless the upload was confirmed or given up while they came in. The
 * one before goes.
 */
async function takeObject(app: App, file: FileRecord, object: string, bytes: StoredBytes): Promise<void> {
  const before = await fileStore(app).findOneAndUpdate(
    { _id: file._id, state: { $in: ['requested', 'stored'] } },
    { $set: { state: 'stored', ...storedAs(file, bytes), object } },
    { returnDocument: 'before' },
  );
  if (!before) return requireOpen(app, file);
  if (before.object !== undefined && before.object !== object) await dropObject(app, file, before.object);
}

/** Removes an object that counts for nothing; what cannot be removed now is known by the record and removed later. */
async function dropObject(app: App, file: FileRecord, object: string): Promise<void> {
  try {
    // A write that failed on its way back may have been done.
    if (await fileStore(app).findOne({ _id: file._id, object, state: { $ne: 'deleted' } })) return;
    await app.files.local.remove(object);
    await fileStore(app).updateOne({ _id: file._id, object: { $ne: object } }, { $pull: { objects: object } });
  } catch (error) {
    app.log.warn({ err: error, path: object }, 'bytes of an upload that nobody needs are left to the sweep');
  }
}

async function requireOpen(app: App, { _id }: FileRecord): Promise<void> {
  const now = await fileStore(app).findOne({ _id });
  if (!now || now.state === 'deleted') throw fileMissing();
  if (now.state === 'confirmed') {
    throw conflict('UPLOAD_CLOSED', 'This upload is already confirmed. Request a new URL');
  }
}

function requireDeclared({ contentType, contentLength }: SignedUpload, grant: LocalGrant): void {
  if (contentType !== grant.contentType) {
    throw invalid('UPLOAD_TYPE_MISMATCH', `Send the header Content-Type: ${grant.contentType}, as declared`);
  }
  if (contentLength !== null && !isTaken(contentLength, grant.size)) throw sizeMismatch(grant.size);
}

/** Passes on what was declared; fails at the first byte that is too many, or at the end when there are too few. */
function limitToDeclared(size: number): Transform {
  let bytes = 0;
  return new Transform({
    transform(chunk: Buffer, _encoding, done) {
      bytes += chunk.length;
      if (bytes > size + MAX_DRIFT_BYTES) done(sizeMismatch(size));
      else done(null, chunk);
    },
    flush: (done) => done(isTaken(bytes, size) ? null : sizeMismatch(size)),
  });
}

/** Nothing at all is no drift. */
const isTaken = (bytes: number, declared: number): boolean =>
  isNearly(bytes, declared) && (bytes > 0 || declared === 0);

function sizeMismatch(size: number): Error {
  return invalid('UPLOAD_SIZE_MISMATCH', `Send ${size} bytes, as declared`);
}
