import {
  created,
  mountedAt,
  ok,
  parameter,
  route,
  wholeNumberParameter,
  type RouteList,
} from '../../http/routes/route.js';
import { arrayOf, ID, MOMENT, object, oneOf, orNull, text, TEXT, WHOLE } from '../../platform/schema/schema.js';
import { PROJECT_OPERATOR, projectOwner } from '../access/operator-access.js';
import { ownAddress } from '../access/own-origin.js';
import { DELETE_FILE, UPLOAD_FILE, UPLOADED_FILE } from '../files/file-routes.js';
import {
  FILES_PAGE,
  listProjectFiles,
  MAX_FILES_PAGE,
  presentListedFile,
  measureStorage,
  STORAGE_USAGE,
} from '../files/list-files.js';

const PATH = text({ minLength: 1, maxLength: 1024 });
export const FILE_FIELDS = {
  path: TEXT,
  name: TEXT,
  contentType: TEXT,
  size: orNull(WHOLE),
  provider: oneOf('internal', 'external'),
  url: orNull(TEXT),
  visibility: oneOf('public', 'attached', 'private'),
  attachedTo: { ...orNull(ID), description: 'The document that the file is attached to.' },
  uploadedBy: orNull(TEXT),
  createdAt: MOMENT,
};
const FILE = object(FILE_FIELDS, 'StoredFile');

export const PROJECT_FILE_ROUTES: RouteList = {
  prefix: '/api/projects/:projectId/files',
  tag: 'Project files',
  rate: 'operator',
  about: 'Files of a project, as its operators see them.',
  routes: [
    route('GET /api/projects/:projectId/files', {
      id: 'listFiles',
      command: 'file',
      summary: 'List files, newest first',
      access: PROJECT_OPERATOR,
      query: {
        limit: wholeNumberParameter('Number of files', FILES_PAGE, { max: MAX_FILES_PAGE }),
        before: parameter('`next` of the previous page', PATH),
        name: parameter('Only names that contain this text, case-insensitive', text({ maxLength: 200 })),
      },
      answers: ok(object({ items: arrayOf(FILE), next: orNull(TEXT) }), 'Files'),
      errors: { 400: ['INVALID_QUERY', 'QUERY_TIMEOUT'] },
      async handle({ app, ctx, project, query }) {
        const { files, next } = await listProjectFiles(app, project, query);
        const serviceUrl = ownAddress(app, ctx);
        return {
          items: await Promise.all(files.map((file) => presentListedFile(app, project, file, serviceUrl))),
          next,
        };
      },
    }),
    route('GET /api/projects/:projectId/files/usage', {
      id: 'getFilesUsage',
      summary: 'Get the number and bytes of files, and the limit of the plan',
      access: PROJECT_OPERATOR,
      answers: ok(STORAGE_USAGE, 'Use of the storage'),
      handle: ({ app, project }) => measureStorage(app, project),
    }),
    // The form is read as it comes, and is not for the audit log.
    mountedAt(
      'POST /api/projects/:projectId/files',
      UPLOAD_FILE,
      {
        ...projectOwner('file upload', { withoutBody: true }),
        readsBody: false,
      },
      { answers: created(UPLOADED_FILE, 'File uploaded') },
    ),
    mountedAt('DELETE /api/projects/:projectId/files', DELETE_FILE, projectOwner('file')),
  ],
};
