import { createHash } from 'node:crypto';
import { promisify } from 'node:util';
import { gzip } from 'node:zlib';
import type { Context } from 'koa';
import { TEXT, type JsonSchema } from '../../platform/schema/schema.js';
import { evaluateConditions } from '../requests/conditions.js';
import { readsGzip } from '../replies/negotiate.js';
import { own, parameter } from './route.js';

const gzipped = promisify(gzip);

/** A file that is the same until the next version, ready to be sent. */
export interface PreparedFile {
  type: string;
  bytes: Buffer;
  /** None of what is compressed already. */
  gzipped: Buffer | null;
  /** Quoted, as in the header. */
  etag: string;
}

/** Of a route that answers with such a file: it may be asked for by the `ETag` of a copy. */
export function fileAnswers(description: string, type: string | readonly string[], schema: JsonSchema = TEXT) {
  const content = Object.fromEntries([type].flat().map((each) => [each, schema]));
  return {
    headers: { 'if-none-match': parameter('`ETag` of a cached copy', TEXT) },
    answers: [own(200, description, content, { ETag: 'Changes with the content' }), own(304, 'The copy is good')],
  };
}

/** The pages may load what is beside them, send requests to their own origin, and nothing else. */
const PAGE_POLICY =
  "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

export async function prepareFile(
  type: string,
  content: string | Buffer,
  { compress = true } = {},
): Promise<PreparedFile> {
  const bytes = Buffer.from(content as string);
  const etag = `"${createHash('sha256').update(bytes).digest('base64url').slice(0, 27)}"`;
  return { type, bytes, gzipped: compress ? await gzipped(bytes, { level: 9 }) : null, etag };
}

/** Answers 304 for a matching ETag, and compresses the file if the client accepts that. */
export function servePreparedFile(ctx: Context, file: PreparedFile): void {
  if (file.type.startsWith('text/html')) ctx.set('Content-Security-Policy', PAGE_POLICY);
  ctx.set({ ETag: file.etag, 'Cache-Control': 'public, max-age=300', Vary: 'Accept-Encoding' });
  ctx.type = file.type;
  ctx.status = 200;
  if (evaluateConditions(ctx.req.headers, file) === 'not-modified') {
    ctx.status = 304;
    return;
  }
  if (file.gzipped && readsGzip(ctx)) {
    ctx.set('Content-Encoding', 'gzip');
    ctx.body = file.gzipped;
  } else {
    ctx.body = file.bytes;
  }
}
