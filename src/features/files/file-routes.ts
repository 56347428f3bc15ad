import { naming, ok, plain, type RouteErrors, route, type RouteList, type Access } from '../../http/routes/route.js';
import {
  arrayOf,
  MOMENT,
  object,
  OBJECT,
  oneOf,
  openObject,
  orNull,
  text,
  TEXT,
  WHOLE,
} from '../../platform/schema/schema.js';
import { requireUserId } from '../access/access-rules.js';
import type { Caller } from '../access/caller.js';
import { READS_DOCUMENTS, SECRET_KEY, giveCaller, type ByKey } from '../access/key-access.js';
import { ownAddress } from '../access/own-origin.js';
import { authenticateKey, callerOf } from '../access/require-key.js';
import {
  ATTACH,
  readSaid,
  requireConfirmer,
  requireRemover,
  requireUploader,
  requirePublicUploads,
} from './attached/attach-file.js';
import { listReadable, MAX_ATTACHED } from './attached/list-attached.js';
import { linkFile, linkFiles } from './attached/link-files.js';
import { CONTENT_TYPE } from './file.js';
import { deleteAllFiles, deleteFile } from './delete-file.js';
import { presentFile } from './list-files.js';
import { confirmUpload } from './uploads/confirm-upload.js';
import { requestUpload, type SeenBy } from './uploads/request-upload.js';
import { receiveUpload, UPLOAD_ERRORS } from './uploads/receive-upload.js';
import { DELETES_UPLOADS_DESCRIPTION, UPLOADS_DESCRIPTION } from '../access/describe-access.js';

const admit: Access['admit'] = (app, ctx) => {
  const check = (): void => {
    const caller = callerOf(ctx);
    // Whether a signed-in user may is decided by the document to which the file is to belong.
    if (caller.bearer.state !== 'user') requirePublicUploads(caller);
  };
  const settling = authenticateKey(app, ctx);
  if (settling) return settling.then(check);
  check();
  return null;
};

/**
 * The secret key; a publishable key too if the project lets those upload (decisions.md 6), or with a signed-in user, of
 * whom the use case asks whether the document of the file is theirs to change.
 */
const UPLOADS: Access<ByKey> = { ...UPLOADS_DESCRIPTION, admit, give: giveCaller };

/** As UPLOADS; the use case compares the user. */
const DELETES_UPLOADS: Access<ByKey> = { ...DELETES_UPLOADS_DESCRIPTION, admit, give: giveCaller };

const NAME = { minLength: 1, maxLength: 1024 };
const PATH = text({ ...NAME, examples: ['66f0c0ffee0ddba11c0de001/7d9e…_photo.png'] });
const IN_PATH = naming('`path` of the file', 'FILE_NOT_FOUND', text({ minLength: 1 }));
const MEDIA_TYPE = text({
  ...NAME,
  pattern: CONTENT_TYPE.source,
  texts: { pattern: 'contentType must be a media type such as image/png' },
});
const SIZE = { ...WHOLE, maximum: Number.MAX_SAFE_INTEGER, description: 'Bytes.' };

const FILE_FIELDS = {
  path: TEXT,
  provider: { ...oneOf('internal', 'external'), description: '`external`: the project’s own bucket.' },
  url: { ...orNull(TEXT), description: 'Public URL; null if the bucket has none.' },
  'warning?': text({ description: 'Present if there is no public URL.' }),
  'visibility?': { ...oneOf('attached', 'private'), description: 'Present if the file is only accessible by links.' },
};
export const UPLOADED_FILE = object({ message: TEXT, ...FILE_FIELDS }, 'UploadedFile');
const VISIBILITY = {
  ...oneOf('public', 'private', 'attached'),
  description: '`private` needs the secret key: the file is only accessible by links. `attached` requires `attach`.',
};
const LINK = { url: TEXT, expiresIn: oneOf('10m') };
/** What the document of an attached file can refuse. */
const ATTACHING: RouteErrors = {
  400: ['INVALID_ID', 'INVALID_BODY', 'VALIDATION_FAILED'],
  404: ['COLLECTION_NOT_FOUND', 'DOCUMENT_NOT_FOUND'],
  409: ['BUCKET_IS_PUBLIC', 'DOCUMENT_CHANGING'],
};
const MAX_LINKS = 100;
const ATTACHED_FILE = object(
  {
    ...{ path: TEXT, name: TEXT, contentType: TEXT, size: orNull(WHOLE), createdAt: MOMENT },
    url: { ...orNull(TEXT), description: 'Valid for ten minutes; null if its storage no longer exists.' },
  },
  'AttachedFile',
);

const OUTAGES = ['STORAGE_UNAVAILABLE', 'STORAGE_REFUSED'];

export const UPLOAD_FILE = route('POST /api/storage/upload', {
  id: 'uploadFile',
  summary: 'Upload a file',
  access: UPLOADS,
  ownBody: {
    content: {
      'multipart/form-data': object({
        'attach?': text({
          description: 'JSON of `{collection, id}`: attaches the file to this document. Send it before the file.',
        }),
        'visibility?': VISIBILITY,
        file: text({ contentMediaType: 'application/octet-stream' }),
      }),
    },
  },
  answers: plain(UPLOADED_FILE, 'Where it is', 201),
  errors: {
    ...UPLOAD_ERRORS,
    ...ATTACHING,
    400: ['FILE_MISSING', ...ATTACHING[400]!],
    404: ['FILE_NOT_FOUND', ...ATTACHING[404]!],
    503: OUTAGES,
  },
  async handle({ app, ctx, caller, project }) {
    const seenBy = (texts: ReadonlyMap<string, string>): Promise<SeenBy> =>
      requireUploader(app, caller, readSaid(texts));
    const file = await receiveUpload(app, ctx, project, userOf(caller), seenBy);
    return { message: 'File uploaded', ...(await presentFile(app, project, file, ownAddress(app, ctx))) };
  },
});

export const DELETE_FILE = route('DELETE /api/storage/file', {
  id: 'deleteFile',
  summary: 'Delete a file',
  access: DELETES_UPLOADS,
  body: openObject({ path: PATH }),
  example: { path: '66f0c0ffee0ddba11c0de001/7d9e…_photo.png' },
  answers: ok({ ...OBJECT, maxProperties: 0 }, 'File deleted'),
  errors: { 404: ['FILE_NOT_FOUND'], 409: ['DOCUMENT_CHANGING'], 503: OUTAGES },
  async handle({ app, caller, project, body }) {
    if (caller.key.type !== 'secret') requireUserId(caller);
    await deleteFile(app, project, body.path, (found) => requireRemover(app, caller, found));
    return {};
  },
});

/** Files of a project (rest-api.md 4.3; decisions.md 6). */
export const FILE_ROUTES: RouteList = {
  prefix: '/api/storage',
  tag: 'Files',
  rate: 'plain',
  keyIn: 'header',
  about:
    'Uploads, directly or by signed addresses. A stored file is public by its address, unless it is attached to a document or private: then it is read by links.',
  guard: (app) => (ctx) => authenticateKey(app, ctx),
  routes: [
    UPLOAD_FILE,
    route('POST /api/storage/upload-request', {
      id: 'requestUpload',
      summary: 'Create a signed upload URL',
      description:
        'Then `PUT` the bytes to `signedUrl` with the declared `Content-Type`, and confirm. Bytes sent later change nothing.',
      access: UPLOADS,
      body: openObject({
        ...{ filename: text(NAME), contentType: MEDIA_TYPE, size: SIZE },
        ...{ 'attach?': ATTACH, 'visibility?': VISIBILITY },
      }),
      example: { filename: 'photo.png', contentType: 'image/png', size: 48_123 },
      answers: plain(object({ signedUrl: TEXT, filePath: TEXT, 'token?': TEXT }, 'UploadGrant'), 'Good for 15 minutes'),
      errors: {
        ...ATTACHING,
        403: ['QUOTA_EXCEEDED'],
        413: ['FILE_TOO_LARGE'],
        429: ['UPLOADS_PENDING'],
        503: OUTAGES,
      },
      async handle({ app, ctx, caller, project, body }) {
        const seenBy = await requireUploader(app, caller, body);
        const more = { serviceUrl: ownAddress(app, ctx), uploadedBy: userOf(caller), seenBy };
        return requestUpload(app, project, body, more);
      },
    }),
    route('POST /api/storage/upload-confirm', {
      id: 'confirmUpload',
      summary: 'Confirm an upload',
      description: 'You can repeat it. Unconfirmed uploads do not count and are deleted after an hour.',
      access: UPLOADS,
      body: openObject({ filePath: PATH, size: SIZE }),
      example: { filePath: '66f0c0ffee0ddba11c0de001/7d9e…_photo.png', size: 48_123 },
      answers: plain(object({ message: oneOf('Upload confirmed'), ...FILE_FIELDS }, 'ConfirmedFile'), 'Where it is'),
      errors: {
        400: ['UPLOAD_SIZE_MISMATCH'],
        403: ['QUOTA_EXCEEDED'],
        404: ['FILE_NOT_FOUND'],
        409: ['UPLOAD_NOT_READY', 'DOCUMENT_CHANGING'],
        413: ['FILE_TOO_LARGE'],
        503: OUTAGES,
      },
      async handle({ app, ctx, caller, project, body }) {
        const file = await confirmUpload(app, project, body, (found) => requireConfirmer(app, caller, found));
        return {
          message: 'Upload confirmed' as const,
          ...(await presentFile(app, project, file, ownAddress(app, ctx))),
        };
      },
    }),
    route('GET /api/storage/files/*path/link', {
      id: 'linkFile',
      summary: 'Create a download link for a file',
      description:
        'The link is valid for ten minutes. The path of the file is between `files/` and `/link`; its slash may be encoded (`%2F`). Attached files need read access to the document, which must not be in the trash. Private files need the secret key.',
      access: READS_DOCUMENTS,
      params: { path: IN_PATH },
      answers: plain(object(LINK, 'FileLink'), 'Its address'),
      errors: { 404: ['FILE_NOT_FOUND'], 503: OUTAGES },
      handle: ({ app, ctx, caller, params }) => linkFile(app, caller, params.path, ownAddress(app, ctx)),
    }),
    route('POST /api/storage/links', {
      id: 'linkFiles',
      summary: `Create download links for up to ${MAX_LINKS} files`,
      description: 'In the order of the paths; valid for ten minutes. `url` is null if the file is not found.',
      access: READS_DOCUMENTS,
      body: object({ paths: arrayOf(PATH, { minItems: 1, maxItems: MAX_LINKS }) }),
      example: { paths: ['66f0c0ffee0ddba11c0de001/7d9e…_photo.png'] },
      answers: ok(
        object({ links: arrayOf(object({ path: TEXT, url: orNull(TEXT), 'expiresIn?': LINK.expiresIn })) }),
        'Links to the files',
      ),
      errors: { 503: OUTAGES },
      async handle({ app, ctx, caller, body: { paths } }) {
        return { links: await linkFiles(app, caller, paths, ownAddress(app, ctx)) };
      },
    }),
    route('GET /api/storage/attached/:collectionName/:id', {
      id: 'listAttachedFiles',
      summary: `List up to ${MAX_ATTACHED} files of a document, with links valid for ten minutes`,
      description: 'Needs read access to the document, which must not be in the trash.',
      access: READS_DOCUMENTS,
      params: {
        collectionName: naming('Name of the collection', 'COLLECTION_NOT_FOUND'),
        id: {
          description: 'Id of the document',
          schema: text({ pattern: '^[0-9a-fA-F]{24}$' }),
          errors: { 400: ['INVALID_ID'], 404: ['DOCUMENT_NOT_FOUND'] },
        },
      },
      answers: ok(object({ items: arrayOf(ATTACHED_FILE) }), 'Files of the document'),
      errors: {
        400: ['QUERY_TIMEOUT'],
        403: ['USERS_BLOCKED', 'READ_BLOCKED', 'TOO_MANY_MEMBERSHIPS'],
        503: OUTAGES,
      },
      async handle({ app, ctx, caller, params: { collectionName: name, id } }) {
        return { items: await listReadable(app, caller, { name, id }, ownAddress(app, ctx)) };
      },
    }),
    DELETE_FILE,
    route('DELETE /api/storage/all', {
      id: 'deleteAllFiles',
      summary: 'Delete all files of the project',
      access: SECRET_KEY,
      answers: ok(object({ deleted: WHOLE }), 'All files deleted'),
      errors: { 503: OUTAGES },
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
