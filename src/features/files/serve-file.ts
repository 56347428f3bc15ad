import type { Context } from 'koa';
import type { App } from '../../app.js';
import { type AppError, preconditionFailed, unsatisfiable } from '../../errors.js';
import { evaluateConditions } from '../../http/requests/conditions.js';
import { isObjectKey } from '../../platform/object-store/object-store.js';
import { parseByteRange } from './byte-range.js';
import { isShownInline, UNKNOWN_TYPE } from './content-type.js';
import { objectOf, visibilityOf, type FileRecord } from './file.js';
import { fileMissing, fileStore, SERVED_FILES } from './file-store.js';

/** Headers of every served file: never sniffed, never a document with rights, readable from any page. */
const HEADERS = {
  'X-Content-Type-Options': 'nosniff',
  'Content-Security-Policy': "default-src 'none'; sandbox",
  'Cross-Origin-Resource-Policy': 'cross-origin',
  'Cache-Control': 'public, max-age=300',
  'Accept-Ranges': 'bytes',
};

/**
 * Answers GET and HEAD for a confirmed file in the data directory: ranges, 304, 416; 404 for everything else, whatever
 * the path looks like, and for a file that is not public without a link to it that is still good.
 */
export async function serveFile(app: App, ctx: Context, path: string): Promise<void> {
  const file = await findServed(app, path);
  // Not ctx.URL, which is empty when the Host header is no host.
  const leftMs = file && visibilityOf(file) !== 'public' ? readLink(app, path, ctx.querystring) : null;
  if (file && leftMs === undefined) throw fileMissing();
  const opened = file && (await app.files.local.openFile(objectOf(file)));
  if (!opened) throw fileMissing();
  try {
    // A path is never used again and a confirmed file never changes, so its id is its version.
    const etag = `"${file._id.toHexString()}"`;
    ctx.set({ ...HEADERS, ETag: etag, 'Last-Modified': file.confirmedAt!.toUTCString() });
    if (leftMs !== null) ctx.set('Cache-Control', `private, max-age=${Math.min(300, Math.floor(leftMs! / 1000))}`);
    const condition = evaluateConditions(ctx.req.headers, { etag, lastModified: file.confirmedAt! });
    if (condition === 'failed') throw conditionFailed();
    if (condition === 'not-modified') {
      ctx.status = 304;
      return;
    }
    const range = isRangeWanted(ctx, etag, file) ? parseByteRange(ctx.get('Range'), opened.size) : null;
    if (range === 'unsatisfiable') throw rangeRefused(opened.size);
    const inline = isShownInline(file.contentType);
    ctx.attachment(file.name, { type: inline ? 'inline' : 'attachment' });
    ctx.set('Content-Type', inline ? file.contentType : UNKNOWN_TYPE);
    const { start, end } = range ?? { start: 0, end: opened.size - 1 };
    ctx.status = range ? 206 : 200;
    if (range) ctx.set('Content-Range', `bytes ${start}-${end}/${opened.size}`);
    ctx.length = end - start + 1;
    if (ctx.method === 'HEAD') return;
    ctx.body = opened.size === 0 ? '' : opened.file.createReadStream({ start, end });
  } finally {
    if (typeof ctx.body !== 'object' || ctx.body === null) await opened.file.close();
  }
}

/** The time that a link has left; undefined where there is no good one. */
function readLink(app: App, path: string, query: string): number | undefined {
  return app.files.local.readLink(path, new URLSearchParams(query)) ?? undefined;
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

function conditionFailed(): AppError {
  return preconditionFailed('CHANGED_MEANWHILE', 'The file is not the one that If-Match or If-Unmodified-Since names');
}

function rangeRefused(size: number): AppError {
  return unsatisfiable('RANGE_NOT_SATISFIABLE', `The file has ${size} bytes`, {
    headers: { 'Content-Range': `bytes */${size}` },
  });
}
