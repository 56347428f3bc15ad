import { Transform, type Readable } from 'node:stream';
import type { App } from '../../app.js';
import { conflict, forbidden, invalid } from '../../errors.js';
import type { LocalGrant } from '../../platform/object-store/local-store.js';
import { isObjectKey } from '../../platform/object-store/object-store.js';
import { isShownInline } from './content-type.js';
import type { FileRecord } from './file.js';
import { fileMissing, fileStore } from './file-store.js';

export interface SignedUpload {
  path: string;
  query: URLSearchParams;
  contentType: string;
  /** As announced by the client; null when it announced none. */
  contentLength: number | null;
  body: Readable;
}

/**
 * Takes the bytes that a signed address of the service itself was given out for (decisions.md 6): exactly the declared type and number of them.
 * 403 UPLOAD_URL_INVALID when the address was not given out or has expired, 400 for another type or size, 409 once the upload is confirmed. Until then it may be repeated.
 */
export async function receiveSignedUpload(app: App, upload: SignedUpload): Promise<void> {
  const grant = isObjectKey(upload.path) ? app.files.local.readGrant(upload.path, upload.query) : null;
  if (!grant)
    throw forbidden('UPLOAD_URL_INVALID', 'This upload address is not valid or has expired: request a new one');
  requireDeclared(upload, grant);
  const file = (await fileStore(app).findOne({ path: upload.path })) as FileRecord | null;
  if (!file || file.state === 'deleted') throw fileMissing();
  if (file.state === 'confirmed')
    throw conflict('UPLOAD_CLOSED', 'This upload is confirmed already: request a new address');
  const body = upload.body.pipe(exactly(grant.size));
  // Told to whoever reads; it may fail before anybody does.
  body.on('error', () => undefined);
  upload.body.once('close', () => {
    if (!upload.body.readableEnded) body.destroy(sizeMismatch(grant.size));
  });
  const options = { contentType: grant.contentType, attachment: !isShownInline(grant.contentType) };
  const size = await app.files.local.put(file.path, body, options);
  const { matchedCount } = await fileStore(app).updateOne(
    { _id: file._id, state: { $in: ['requested', 'stored'] } },
    { $set: { state: 'stored', size } },
  );
  if (matchedCount === 1) return;
  // Given up or confirmed while the bytes came in.
  const now = await fileStore(app).findOne({ _id: file._id });
  if (now && now.state !== 'deleted') return;
  await app.files.local.remove(file.path);
  throw fileMissing();
}

function requireDeclared({ contentType, contentLength }: SignedUpload, grant: LocalGrant): void {
  if (contentType !== grant.contentType) {
    throw invalid('UPLOAD_TYPE_MISMATCH', `Send the header Content-Type: ${grant.contentType}, as declared`);
  }
  if (contentLength !== null && contentLength !== grant.size) throw sizeMismatch(grant.size);
}

/** Passes on exactly `size` bytes; fails at the first one more, or at the end when there are fewer. */
function exactly(size: number): Transform {
  let bytes = 0;
  return new Transform({
    transform(chunk: Buffer, _encoding, done) {
      bytes += chunk.length;
      if (bytes > size) done(sizeMismatch(size));
      else done(null, chunk);
    },
    flush: (done) => done(bytes === size ? null : sizeMismatch(size)),
  });
}

function sizeMismatch(size: number): Error {
  return invalid('UPLOAD_SIZE_MISMATCH', `Send exactly ${size} bytes, as declared`);
}
