import { ok, plain, route, type RouteList } from '../../http/routes/route.js';
import { object, OBJECT, oneOf, openObject, orNull, text, TEXT, WHOLE } from '../../platform/schema/schema.js';
import { requireUserId } from '../access/access-rules.js';
import type { Caller } from '../access/caller.js';
import { SECRET_KEY } from '../access/key-access.js';
import { ownAddress } from '../access/own-origin.js';
import { settleKey } from '../access/require-key.js';
import { CONTENT_TYPE } from './content-type.js';
import { deleteAllFiles, deleteFile } from './delete-file.js';
import { presentFile } from './present-file.js';
import { confirmUpload } from './uploads/confirm-upload.js';
import { requestUpload } from './uploads/request-upload.js';
import { DELETES_UPLOADS, UPLOADS } from './uploads/upload-access.js';
import { receiveUpload, UPLOAD_FORM, UPLOAD_REFUSALS } from './uploads/receive-upload.js';

const NAME = { minLength: 1, maxLength: 1024 };
const PATH = text({ ...NAME, examples: ['66f0c0ffee0ddba11c0de001/7d9e…_photo.png'] });
const MEDIA_TYPE = text({
  ...NAME,
  pattern: CONTENT_TYPE.source,
  texts: { pattern: 'contentType must be a media type such as image/png' },
});
const SIZE = { ...WHOLE, maximum: Number.MAX_SAFE_INTEGER, description: 'Bytes.' };

const FILE_FIELDS = {
  path: TEXT,
  provider: { ...oneOf('internal', 'external'), description: '`external`: the project’s own bucket.' },
  url: { ...orNull(TEXT), description: 'Public address; null when the bucket has none.' },
  'warning?': text({ description: 'Present when there is no public address.' }),
};

const OUTAGES = ['STORAGE_UNAVAILABLE', 'STORAGE_REFUSED'];

/** Files of a project (rest-api.md 4.3; decisions.md 6). */
export const FILE_ROUTES: RouteList = {
  prefix: '/api/storage',
  tag: 'Files',
  rate: 'plain',
  keyIn: 'header',
  about: 'Uploads, directly or by signed addresses. Every stored file is public by its address.',
  guard: (app) => (ctx) => settleKey(app, ctx),
  routes: [
    route('POST /api/storage/upload', {
      id: 'uploadFile',
      summary: 'Upload a file',
      access: UPLOADS,
      ownBody: { content: UPLOAD_FORM },
      answers: plain(object({ message: TEXT, ...FILE_FIELDS }, 'UploadedFile'), 'Where it is', 201),
      refuses: { ...UPLOAD_REFUSALS, 503: OUTAGES },
      async handle({ app, ctx, caller, project }) {
        const file = await receiveUpload(app, ctx, project, userOf(caller));
        return { message: 'File uploaded', ...(await presentFile(app, project, file, ownAddress(app, ctx))) };
      },
    }),
    route('POST /api/storage/upload-request', {
      id: 'requestUpload',
      summary: 'Get a signed address to upload a file to',
      description:
        'Then `PUT` the bytes to `signedUrl` with the declared `Content-Type`, and confirm. What is sent after the confirmation, or arrives late, changes nothing.',
      access: UPLOADS,
      body: openObject({ filename: text(NAME), contentType: MEDIA_TYPE, size: SIZE }),
      example: { filename: 'photo.png', contentType: 'image/png', size: 48_123 },
      answers: plain(object({ signedUrl: TEXT, filePath: TEXT, 'token?': TEXT }, 'UploadGrant'), 'Good for 15 minutes'),
      refuses: { 403: ['QUOTA_EXCEEDED'], 413: ['FILE_TOO_LARGE'], 429: ['UPLOADS_PENDING'], 503: OUTAGES },
      handle: ({ app, ctx, caller, project, body }) =>
        requestUpload(app, project, body, { serviceUrl: ownAddress(app, ctx), uploadedBy: userOf(caller) }),
    }),
    route('POST /api/storage/upload-confirm', {
      id: 'confirmUpload',
      summary: 'Confirm that the bytes were sent',
      description: 'May be repeated. Until it succeeds nothing is charged, and after an hour the bytes are removed.',
      access: UPLOADS,
      body: openObject({ filePath: PATH, size: SIZE }),
      example: { filePath: '66f0c0ffee0ddba11c0de001/7d9e…_photo.png', size: 48_123 },
      answers: plain(object({ message: oneOf('Upload confirmed'), ...FILE_FIELDS }, 'ConfirmedFile'), 'Where it is'),
      refuses: {
        400: ['UPLOAD_SIZE_MISMATCH'],
        403: ['QUOTA_EXCEEDED'],
        404: ['FILE_NOT_FOUND'],
        409: ['UPLOAD_NOT_READY'],
        413: ['FILE_TOO_LARGE'],
        503: OUTAGES,
      },
      async handle({ app, ctx, project, body }) {
        const file = await confirmUpload(app, project, body);
        return {
          message: 'Upload confirmed' as const,
          ...(await presentFile(app, project, file, ownAddress(app, ctx))),
        };
      },
    }),
    route('DELETE /api/storage/file', {
      id: 'deleteFile',
      summary: 'Delete a file',
      access: DELETES_UPLOADS,
      body: openObject({ path: PATH }),
      example: { path: '66f0c0ffee0ddba11c0de001/7d9e…_photo.png' },
      answers: ok({ ...OBJECT, maxProperties: 0 }, 'File deleted'),
      refuses: { 404: ['FILE_NOT_FOUND'], 503: OUTAGES },
      async handle({ app, caller, project, body }) {
        // Paths stand in public addresses, so knowing one is no right to it.
        const uploader = caller.key.type === 'secret' ? null : requireUserId(caller);
        await deleteFile(app, project, body.path, uploader);
        return {};
      },
    }),
    route('DELETE /api/storage/all', {
      id: 'deleteAllFiles',
      summary: 'Delete all files of the project',
      access: SECRET_KEY,
      answers: ok(object({ deleted: WHOLE }), 'All files deleted'),
      refuses: { 503: OUTAGES },
      async handle({ app, project }) {
        return { deleted: await deleteAllFiles(app, project) };
      },
    }),
  ],
};

/** The end user who is signed in, or null. */
function userOf({ bearer }: Caller): string | null {
  return bearer.state === 'user' ? bearer.userId : null;
}
