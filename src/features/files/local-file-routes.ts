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
import { serveFile } from './serve-file.js';
import { receiveSignedUpload } from './uploads/receive-signed-upload.js';

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
