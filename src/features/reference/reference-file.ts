import { createHash } from 'node:crypto';
import { promisify } from 'node:util';
import { gzip } from 'node:zlib';
import type { Context } from 'koa';

const gzipped = promisify(gzip);

/** Text that is the same for everybody until the next version, ready to be sent. */
export interface ReferenceFile {
  type: string;
  bytes: Buffer;
  /** None of what is compressed already. */
  gzipped: Buffer | null;
  /** Quoted, as in the header. */
  etag: string;
}

/** The pages may load what is beside them, send requests to their own origin, and nothing else. */
const PAGE_POLICY =
  "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

export async function makeReferenceFile(
  type: string,
  content: string | Buffer,
  { compress = true } = {},
): Promise<ReferenceFile> {
  const bytes = Buffer.from(content as string);
  const etag = `"${createHash('sha256').update(bytes).digest('base64url').slice(0, 27)}"`;
  return { type, bytes, gzipped: compress ? await gzipped(bytes) : null, etag };
}

/** Answers 304 to who has the file, and compresses it for who can read that. */
export function serveReferenceFile(ctx: Context, file: ReferenceFile): void {
  if (file.type.startsWith('text/html')) ctx.set('Content-Security-Policy', PAGE_POLICY);
  ctx.set({ ETag: file.etag, 'Cache-Control': 'public, max-age=300', Vary: 'Accept-Encoding' });
  ctx.type = file.type;
  ctx.status = 200;
  if (ctx.fresh) {
    ctx.status = 304;
    return;
  }
  if (file.gzipped && ctx.acceptsEncodings('gzip', 'identity') === 'gzip') {
    ctx.set('Content-Encoding', 'gzip');
    ctx.body = file.gzipped;
  } else {
    ctx.body = file.bytes;
  }
}
