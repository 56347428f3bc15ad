import { Readable } from 'node:stream';
import type { Context } from 'koa';
import type { App } from '../../app.js';
import { AppError, preconditionFailed, unsatisfiable } from '../../errors.js';
import { parseByteRange } from '../../http/requests/byte-range.js';
import { evaluateConditions } from '../../http/requests/conditions.js';
import { DamagedFileError, ReplacedFileError } from '../../platform/object-store/block-sums.js';
import { isObjectKey } from '../../platform/object-store/object-store.js';
import { collectionStore } from '../collections/collection-store.js';
import { documentStore } from '../documents/store/document-store.js';
import {
  isShownInline,
  UNKNOWN_TYPE,
  isSince,
  TRASH_TOO,
  visibilityOf,
  readFileBytes,
  fileMissing,
  fileStore,
  SERVED_FILES,
  type FileDocument,
  type FileRecord,
} from './file.js';
import {
  done,
  naming,
  own,
  parameter,
  PUBLIC,
  route,
  type RouteContext,
  type RouteList,
} from '../../http/routes/route.js';
import { LOCAL_FILES_PATH } from '../../platform/object-store/local-store.js';
import { text, TEXT } from '../../platform/schema/schema.js';
import { receiveSignedUpload } from './uploads/receive-signed-upload.js';

/** Headers of every served file: never sniffed, never a document with rights, readable from any page. */
const SERVED_HEADERS = {
  'X-Content-Type-Options': 'nosniff',
  'Content-Security-Policy': "default-src 'none'; sandbox",
  'Cross-Origin-Resource-Policy': 'cross-origin',
  'Cache-Control': 'public, max-age=300',
  'Accept-Ranges': 'bytes',
};

/**
 * Answers GET and HEAD for a confirmed file in the data directory: ranges, 304, 416; 404 for everything else, whatever
 * the path looks like, for a file that is not public without a link to it that is still good, and for an attached one
 * whose document is not active; 500 STORE_DAMAGED for bytes that are not those that were stored.
 */
async function serveFile(app: App, ctx: Context, path: string): Promise<void> {
  const file = await findServed(app, path);
  // Not ctx.URL, which is empty when the Host header is no host.
  const leftMs = file && visibilityOf(file) !== 'public' ? readLink(app, path, ctx.querystring) : null;
  if (!file || leftMs === undefined) throw fileMissing();
  const inTrash = new URLSearchParams(ctx.querystring).get('mark') === TRASH_TOO;
  if (file.attachedTo && !(await isDocumentThere(app, file, file.attachedTo, inTrash))) throw fileMissing();
  // A path is never used again and a confirmed file never changes, so its id is its version.
  const etag = `"${file._id.toHexString()}"`;
  const lastModified = file.confirmedAt!;
  const size = file.size!;
  const condition = evaluateConditions(ctx.req.headers, { etag, lastModified });
  const range = isRangeWanted(ctx, etag, file) ? parseByteRange(ctx.get('Range'), size) : null;
  const refusal = refusalOf(condition, range, size);
  const { start, end } = range === null || range === 'unsatisfiable' ? { start: 0, end: size - 1 } : range;
  // Before any header: what is damaged at its beginning, cut short or missing is an error and nothing else.
  const body = condition === 'not-modified' || refusal ? null : await openBytes(app, file, { start, end });
  ctx.set({ ...SERVED_HEADERS, ETag: etag, 'Last-Modified': lastModified.toUTCString() });
  if (leftMs !== null) ctx.set('Cache-Control', `private, max-age=${Math.min(300, Math.floor(leftMs / 1000))}`);
  if (refusal) throw refusal;
  if (!body) {
    ctx.status = 304;
    return;
  }
  const inline = isShownInline(file.contentType);
  ctx.attachment(file.name, { type: inline ? 'inline' : 'attachment' });
  ctx.set('Content-Type', inline ? file.contentType : UNKNOWN_TYPE);
  ctx.status = range ? 206 : 200;
  if (range) ctx.set('Content-Range', `bytes ${start}-${end}/${size}`);
  ctx.length = end - start + 1;
  if (ctx.method === 'HEAD' || size === 0) body.destroy();
  if (ctx.method !== 'HEAD') ctx.body = size === 0 ? '' : body;
}

/**
 * The bytes of a file as a stream whose first block has been compared. A later one that is damaged ends the stream with
 * an error, so that no wrong byte is sent. 500 STORE_DAMAGED.
 */
async function openBytes(app: App, file: FileRecord, range: { start: number; end: number }): Promise<Readable> {
  const bytes = readFileBytes(app, file, range);
  let first: IteratorResult<Buffer, void>;
  try {
    first = await bytes.next();
  } catch (error) {
    if (!(error instanceof DamagedFileError)) throw error;
    // It may have been deleted by another process since its record was kept.
    if (!(await fileStore(app).findOne({ _id: file._id, state: 'confirmed' }))) throw fileMissing();
    noteDamage(app, error);
    if (error instanceof ReplacedFileError) throw fileMissing();
    throw new AppError('internal', 'STORE_DAMAGED', DAMAGED, { cause: error });
  }
  const body = Readable.from(following(app, first, bytes), { objectMode: false });
  // Also before the first read.
  return body.once('close', () => void bytes.return());
}

const DAMAGED = 'The file is damaged in the store and cannot be read. The operator of this service can restore it.';

async function* following(
  app: App,
  first: IteratorResult<Buffer, void>,
  rest: AsyncGenerator<Buffer, void, undefined>,
): AsyncGenerator<Buffer> {
  if (first.done === true) return;
  yield first.value;
  try {
    yield* rest;
  } catch (error) {
    if (error instanceof DamagedFileError) noteDamage(app, error);
    throw error;
  }
}

function noteDamage({ log }: App, error: DamagedFileError): void {
  log.error({ err: error, path: error.object }, 'an uploaded file is damaged: restore it from a backup');
}

/** The time that a link has left; undefined where there is no good one. */
function readLink(app: App, path: string, query: string): number | undefined {
  return app.files.local.readLink(path, new URLSearchParams(query)) ?? undefined;
}

/** True while the document of an attached file is active, or in the trash: a link does not outlive it. */
async function isDocumentThere(
  app: App,
  { projectId }: FileRecord,
  attachedTo: FileDocument,
  inTrash: boolean,
): Promise<boolean> {
  const collection = await collectionStore(app).findOne({ _id: attachedTo.collectionId, projectId, state: 'active' });
  const found =
    collection &&
    (await documentStore(app, collection).findOne(
      { _id: attachedTo.id, isDeleted: inTrash ? { $in: [true, false] } : false },
      { ...app.db.confirmedReads, projection: { createdAt: 1 } },
    ));
  return found !== null && isSince(attachedTo, found.createdAt);
}

function findServed(app: App, path: string): Promise<FileRecord | null> {
  if (!isObjectKey(path)) return Promise.resolve(null);
  return app.cache.read(
    SERVED_FILES,
    path,
    async () => await fileStore(app).findOne({ path, state: 'confirmed', place: 'local' }),
  );
}

function isRangeWanted(ctx: Context, etag: string, file: FileRecord): boolean {
  const condition = ctx.get('If-Range');
  return condition === '' || condition === etag || condition === file.confirmedAt!.toUTCString();
}

function refusalOf(
  condition: ReturnType<typeof evaluateConditions>,
  range: ReturnType<typeof parseByteRange>,
  size: number,
): AppError | null {
  if (condition === 'failed') return conditionFailed();
  return condition !== 'not-modified' && range === 'unsatisfiable' ? rangeRefused(size) : null;
}

function conditionFailed(): AppError {
  return preconditionFailed('CHANGED_MEANWHILE', 'The file does not match If-Match or If-Unmodified-Since');
}

function rangeRefused(size: number): AppError {
  return unsatisfiable('RANGE_NOT_SATISFIABLE', `The file has ${size} bytes`, {
    headers: { 'Content-Range': `bytes */${size}` },
  });
}

const BYTES = { '*/*': text({ contentMediaType: 'application/octet-stream' }) };
const FILE_HEADERS = {
  ETag: 'Names the file’s version, which never changes',
  'Content-Disposition': '`attachment` unless the type is safe to show',
  'Accept-Ranges': '`bytes`',
};
const SIGNED = { ...parameter('From the signed URL', TEXT), required: true };

/** Files in the data directory: public addresses (GET) and signed ones for uploads (PUT). Needs no key. */
export const LOCAL_FILE_ROUTES: RouteList = {
  prefix: LOCAL_FILES_PATH,
  tag: 'Files',
  rate: 'free',
  params: { path: naming('`path` of the file, slashes included', 'FILE_NOT_FOUND', text({ minLength: 1 })) },
  routes: [
    route(`GET ${LOCAL_FILES_PATH}/*path`, {
      id: 'readFile',
      summary: 'Read a public file',
      access: PUBLIC,
      headers: {
        range: parameter('A byte range: `bytes=0-99`', TEXT),
        'if-none-match': parameter('`ETag` of a cached copy', TEXT),
        'if-modified-since': parameter('`Last-Modified` of a cached copy', TEXT),
        'if-match': parameter('`ETag` of the required version', TEXT),
        'if-unmodified-since': parameter('`Last-Modified` of the required version', TEXT),
        'if-range': parameter('`ETag` or `Last-Modified` of the partial copy', TEXT),
      },
      answers: [
        own(200, 'The file, in its own type', BYTES, FILE_HEADERS),
        own(206, 'The part', BYTES, FILE_HEADERS),
        own(304, 'The copy is good'),
      ],
      errors: { 412: ['CHANGED_MEANWHILE'], 416: ['RANGE_NOT_SATISFIABLE'] },
      handle: ({ app, ctx }) => serveFile(app, ctx, pathOf(ctx)),
    }),
    route(`PUT ${LOCAL_FILES_PATH}/*path`, {
      id: 'putSignedFile',
      summary: 'Upload the bytes to a signed URL',
      access: PUBLIC,
      ownQuery: { expires: SIGNED, size: SIGNED, type: SIGNED, signature: SIGNED },
      // An empty file has none.
      ownBody: { content: BYTES, required: false },
      answers: done('File stored'),
      errors: {
        400: ['UPLOAD_TYPE_MISMATCH', 'UPLOAD_SIZE_MISMATCH'],
        403: ['UPLOAD_URL_INVALID'],
        409: ['UPLOAD_CLOSED'],
        429: ['UPLOADS_PENDING'],
      },
      handle: ({ app, ctx }) =>
        receiveSignedUpload(app, {
          path: pathOf(ctx),
          // Not ctx.URL, which is empty when the Host header is no host.
          query: new URLSearchParams(ctx.querystring),
          contentType: ctx.get('content-type'),
          contentLength: ctx.request.length ?? null,
          body: ctx.req,
        }),
    }),
  ],
};

/** A path has nothing to decode but its slash, which some clients encode. */
function pathOf(ctx: RouteContext): string {
  return ctx.path.slice(LOCAL_FILES_PATH.length + 1).replace(/%2f/i, '/');
}
