import {
  done,
  jsonAnswer,
  jsonBody,
  naming,
  object,
  ok,
  oneOf,
  openObject,
  orNull,
  parameter,
  PUBLIC,
  TEXT,
  WHOLE,
  type GroupDescription,
  type Schema,
} from '../../http/routes/route-description.js';
import { LOCAL_FILES_PATH } from '../../platform/object-store/local-store.js';
import { DELETES_UPLOADS, SECRET_KEY, UPLOADS } from '../access/describe-access.js';

const NAME: Schema = { type: 'string', minLength: 1, maxLength: 1024 };
const SIZE: Schema = { type: 'integer', minimum: 0, description: 'Bytes.' };
const PATH: Schema = { ...NAME, examples: ['66f0c0ffee0ddba11c0de001/7d9e…_photo.png'] };

/** What presentFile answers. */
const FILE_FIELDS: Record<string, Schema> = {
  path: TEXT,
  provider: { ...oneOf('internal', 'external'), description: '`external`: the project’s own bucket.' },
  url: { ...orNull(TEXT), description: 'Public address; null when the bucket has none.' },
  'warning?': { ...TEXT, description: 'Present when there is no public address.' },
};

const OUTAGES = ['STORAGE_UNAVAILABLE', 'STORAGE_REFUSED'];

/** As in routes.ts. */
export const FILE_ROUTES: GroupDescription = {
  prefix: '/api/storage',
  tag: 'Files',
  about: 'Uploads, directly or by signed addresses. Every stored file is public by its address.',
  routes: {
    'POST /upload': {
      id: 'uploadFile',
      summary: 'Upload a file',
      access: UPLOADS,
      body: {
        content: {
          'multipart/form-data': object({ file: { type: 'string', contentMediaType: 'application/octet-stream' } }),
        },
      },
      answers: { 201: jsonAnswer('Where it is', object({ message: TEXT, ...FILE_FIELDS }, 'UploadedFile')) },
      refuses: {
        400: ['FILE_MISSING', 'INVALID_BODY'],
        403: ['QUOTA_EXCEEDED'],
        404: ['FILE_NOT_FOUND'],
        413: ['FILE_TOO_LARGE'],
        503: OUTAGES,
      },
    },
    'POST /upload-request': {
      id: 'requestUpload',
      summary: 'Get a signed address to upload a file to',
      description:
        'Then `PUT` the bytes to `signedUrl` with the declared `Content-Type`, and confirm. What is sent after the confirmation, or arrives late, changes nothing.',
      access: UPLOADS,
      body: jsonBody(openObject({ filename: NAME, contentType: NAME, size: SIZE }), {
        filename: 'photo.png',
        contentType: 'image/png',
        size: 48_123,
      }),
      answers: {
        200: jsonAnswer(
          'Good for 15 minutes',
          object({ signedUrl: TEXT, filePath: TEXT, 'token?': TEXT }, 'UploadGrant'),
        ),
      },
      refuses: {
        400: ['VALIDATION_FAILED'],
        403: ['QUOTA_EXCEEDED'],
        413: ['FILE_TOO_LARGE'],
        429: ['UPLOADS_PENDING'],
        503: OUTAGES,
      },
    },
    'POST /upload-confirm': {
      id: 'confirmUpload',
      summary: 'Confirm that the bytes were sent',
      description: 'May be repeated. Until it succeeds nothing is charged, and after an hour the bytes are removed.',
      access: UPLOADS,
      body: jsonBody(openObject({ filePath: PATH, size: SIZE }), {
        filePath: '66f0c0ffee0ddba11c0de001/7d9e…_photo.png',
        size: 48_123,
      }),
      answers: {
        200: jsonAnswer(
          'Where it is',
          object({ message: { const: 'Upload confirmed' }, ...FILE_FIELDS }, 'ConfirmedFile'),
        ),
      },
      refuses: {
        400: ['VALIDATION_FAILED', 'UPLOAD_SIZE_MISMATCH'],
        403: ['QUOTA_EXCEEDED'],
        404: ['FILE_NOT_FOUND'],
        409: ['UPLOAD_NOT_READY'],
        413: ['FILE_TOO_LARGE'],
        503: OUTAGES,
      },
    },
    'DELETE /file': {
      id: 'deleteFile',
      summary: 'Delete a file',
      access: DELETES_UPLOADS,
      body: jsonBody(openObject({ path: PATH }), { path: '66f0c0ffee0ddba11c0de001/7d9e…_photo.png' }),
      answers: ok('Deleted', { type: 'object', maxProperties: 0 }),
      refuses: { 400: ['VALIDATION_FAILED'], 404: ['FILE_NOT_FOUND'], 503: OUTAGES },
    },
    'DELETE /all': {
      id: 'deleteAllFiles',
      summary: 'Delete all files of the project',
      access: SECRET_KEY,
      answers: ok('How many there were', object({ deleted: WHOLE })),
      refuses: { 503: OUTAGES },
    },
  },
};

const BYTES: Schema = { type: 'string', contentMediaType: 'application/octet-stream' };
const FILE_HEADERS = {
  ETag: 'Names the file’s version, which never changes',
  'Content-Disposition': '`attachment` unless the type is safe to show',
  'Accept-Ranges': '`bytes`',
};

/** As in local-routes.ts. */
export const LOCAL_FILE_ROUTES: GroupDescription = {
  prefix: LOCAL_FILES_PATH,
  tag: 'Files',
  path: { path: naming('`path` of the file, slashes included', 'FILE_NOT_FOUND', { type: 'string', minLength: 1 }) },
  routes: {
    'GET /*path': {
      id: 'readFile',
      summary: 'Read a public file',
      access: PUBLIC,
      headers: {
        range: parameter('A part of it: `bytes=0-99`', TEXT),
        'if-none-match': parameter('`ETag` of a copy', TEXT),
        'if-range': parameter('`ETag` or `Last-Modified` of the copy that the range belongs to', TEXT),
      },
      answers: {
        200: { description: 'The file, in its own type', content: { '*/*': BYTES }, headers: FILE_HEADERS },
        206: { description: 'The part', content: { '*/*': BYTES }, headers: FILE_HEADERS },
        304: { description: 'The copy is good' },
      },
      refuses: { 416: ['RANGE_NOT_SATISFIABLE'] },
    },
    'PUT /*path': {
      id: 'putSignedFile',
      summary: 'Send the bytes of an upload to its signed address',
      access: PUBLIC,
      query: {
        expires: parameter('As in the signed address', TEXT, true),
        size: parameter('As in the signed address', TEXT, true),
        type: parameter('As in the signed address', TEXT, true),
        signature: parameter('As in the signed address', TEXT, true),
      },
      body: { content: { '*/*': BYTES } },
      answers: done('Stored, to be confirmed'),
      refuses: {
        400: ['UPLOAD_TYPE_MISMATCH', 'UPLOAD_SIZE_MISMATCH'],
        403: ['UPLOAD_URL_INVALID'],
        409: ['UPLOAD_CLOSED'],
        429: ['UPLOADS_PENDING'],
      },
    },
  },
};
