import { constants } from 'node:fs';
import { open, type FileHandle } from 'node:fs/promises';
import type { Context, Middleware } from 'koa';
import type { Logger } from '../../platform/observe/logger.js';
import { preconditionFailed, unsatisfiable } from '../../errors.js';
import { chooseEncoding } from '../replies/negotiate.js';
import { isOpenedByBrowser } from '../replies/plain-page.js';
import { parseByteRange } from '../requests/byte-range.js';
import { evaluateConditions } from '../requests/conditions.js';
import { listPublicFolder, type PublicFile, type PublicListing } from './list-public-folder.js';

/** What the service answers itself, whatever the folder has. */
const OURS = /^\/(api|console|files|metrics)(\/|$)/;

const HEADERS = {
  // The front end is an application of its own: in place of what keeps browsers from taking an API's reply for a page.
  'Content-Security-Policy': "frame-ancestors 'self'",
  'X-Frame-Options': 'SAMEORIGIN',
  'Referrer-Policy': 'strict-origin-when-cross-origin',
  'Accept-Ranges': 'bytes',
};
const NOT_THIS_VERSION = 'The file does not match If-Match or If-Unmodified-Since';
const FOR_EVER = 'public, max-age=31536000, immutable';

/** Read at once; a larger file is sent as it is read. */
const SMALL_BYTES = 64 * 1024;
const UNKNOWN_TYPE = 'application/octet-stream';

/**
 * Serves the files of a folder at `/`, and with `spa` its index.html for every page that is no file. Everything else,
 * and what is below the service's own paths, goes on. A page that has changed since the folder was listed means that
 * there is a new build: the folder is listed again.
 */
export function servePublicFolder(dir: string, spa: boolean, log: Logger): Middleware {
  const list = (): PublicListing => {
    const listed = listPublicFolder(dir);
    if (listed.links.length > 0) log.warn({ links: listed.links.slice(0, 10) }, LEFT_OUT);
    return listed;
  };
  let listing = list();
  let listedMs = Date.now();
  const listAgain = (): void => {
    try {
      listing = list();
      listedMs = Date.now();
    } catch (error) {
      // In the middle of a build there may be no folder: what was there stays until there is one.
      log.warn({ err: error }, 'the folder of the front end cannot be listed');
    }
  };

  const send = async (ctx: Context, address: string, status: number): Promise<boolean> => {
    const file = listing.files.get(address);
    if (!file) return false;
    const isSent = await sendFile(ctx, file, status, (changedMs) => {
      if (file.isPage && changedMs > listedMs) listAgain();
    });
    if (!isSent) listAgain();
    return isSent;
  };

  return async (ctx, next): Promise<void> => {
    const address = addressOf(ctx);
    if (address === null) {
      await next();
      return;
    }
    if (await send(ctx, address, 200)) return;
    if (listing.folders.has(address)) {
      // Relative, so that it holds behind a proxy that takes a prefix away.
      ctx.set('Location', `${encodeURIComponent(address.slice(address.lastIndexOf('/') + 1))}/`);
      ctx.body = null;
      ctx.status = 308;
      return;
    }
    const seeks = !OWN_PAGES.has(address) && isNavigation(ctx);
    if (seeks && (await (spa ? send(ctx, '/', 200) : send(ctx, '/404', 404)))) return;
    await next();
  };
}

const LEFT_OUT = 'links that lead out of the folder of the front end, or to folders, are not served';

/** Pages of the service that a folder may have in their place. */
const OWN_PAGES = new Set(['/', '/llms.txt']);

/** The address without its encoding; null for what is no file: ours, another method, broken encoding. */
function addressOf(ctx: Context): string | null {
  if (ctx.method !== 'GET' && ctx.method !== 'HEAD') return null;
  try {
    const address = decodeURIComponent(ctx.path).normalize('NFC');
    return OURS.test(address) ? null : address;
  } catch {
    return null;
  }
}

/** Whether a person goes to a page, rather than a page asking for what it needs. */
function isNavigation(ctx: Context): boolean {
  const mode = ctx.get('sec-fetch-mode');
  return mode === '' ? isOpenedByBrowser(ctx) : mode === 'navigate';
}

/**
 * Answers with the file as it is now; false where it has gone, or is written at this moment. `note` receives its
 * modification time.
 */
async function sendFile(
  ctx: Context,
  file: PublicFile,
  status: number,
  note: (changedMs: number) => void,
): Promise<boolean> {
  const isWhole = ctx.get('range') === '';
  const there = Object.keys(file.compressed) as ('br' | 'gzip')[];
  if (there.length > 0) ctx.vary('Accept-Encoding');
  const encoding = isWhole ? chooseEncoding(ctx, there) : null;
  const handle = await openFile(encoding ? file.compressed[encoding]! : file.path);
  if (!handle) return false;
  let isKept = false;
  try {
    const found = await handle.stat();
    if (!found.isFile()) return false;
    const { size, mtime, mtimeMs } = found;
    note(mtimeMs);
    // Of what is not compressed: conditions compare tags without such an ending.
    const name = `"${size.toString(36)}-${Math.floor(mtimeMs).toString(36)}"`;
    const etag = encoding ? name.replace(/"$/, `-${encoding}"`) : name;
    const conditions = status === 200 ? ctx.req.headers : {};
    const condition = evaluateConditions(conditions, { etag: name, lastModified: mtime });
    if (condition === 'failed') throw preconditionFailed('CHANGED_MEANWHILE', NOT_THIS_VERSION);
    const ifRange = ctx.get('if-range');
    const isWanted = ifRange === '' || ifRange === etag || ifRange === mtime.toUTCString();
    const range = isWanted ? parseByteRange(conditions.range ?? '', size) : null;
    if (range === 'unsatisfiable' && condition === 'proceed') {
      throw unsatisfiable('RANGE_NOT_SATISFIABLE', `The file has ${size} bytes`, {
        headers: { 'Content-Range': `bytes */${size}` },
      });
    }
    const isCopied = condition === 'not-modified' || range === 'unsatisfiable';
    const { start, end } = isCopied || !range ? { start: 0, end: size - 1 } : range;
    const length = end - start + 1;
    const isRead = !isCopied && ctx.method !== 'HEAD';
    const bytes = isRead && length <= SMALL_BYTES ? await readPart(handle, start, length) : null;
    if (bytes && bytes.length < length) return false;
    ctx.set({ ...HEADERS, ETag: etag, 'Last-Modified': mtime.toUTCString() });
    ctx.set('Cache-Control', file.isHashed && status === 200 ? FOR_EVER : 'no-cache');
    if (isCopied) {
      ctx.status = 304;
      return true;
    }
    ctx.status = range ? 206 : status;
    if (range) ctx.set('Content-Range', `bytes ${start}-${end}/${size}`);
    ctx.type = file.extension;
    if (ctx.type === '') ctx.set('Content-Type', UNKNOWN_TYPE);
    if (encoding) ctx.set('Content-Encoding', encoding);
    if (bytes) {
      ctx.body = bytes;
    } else if (isRead) {
      isKept = true;
      const stream = handle.createReadStream({ start, end });
      // Of a file that has become shorter: what the connection sends next would be taken for the rest.
      stream.once('end', () => stream.bytesRead < length && ctx.res.destroy());
      ctx.body = stream;
    }
    ctx.length = length;
    return true;
  } finally {
    if (!isKept) await handle.close();
  }
}

async function readPart(handle: FileHandle, start: number, length: number): Promise<Buffer> {
  const bytes = Buffer.alloc(length);
  const { bytesRead } = await handle.read(bytes, 0, length, start);
  return bytes.subarray(0, bytesRead);
}

/** Null where it has gone, or is a link now. */
async function openFile(path: string): Promise<FileHandle | null> {
  try {
    return await open(path, constants.O_RDONLY | constants.O_NOFOLLOW);
  } catch {
    return null;
  }
}
