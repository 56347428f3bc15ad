import type { App } from '../../app.js';
import { sentHeader } from '../../http/requests/sent-header.js';
import {
  created,
  encoded,
  envelope,
  flagParameter,
  ok,
  parameter,
  route,
  say,
  wholeNumberParameter,
  type Access,
} from '../../http/routes/route.js';
import {
  arrayOf,
  claimed,
  FLAG,
  ID,
  integer,
  MOMENT,
  object,
  oneOf,
  orNull,
  type Schema,
  TEXT,
  WHOLE,
} from '../../platform/schema/schema.js';
import { PROJECT_OPERATOR, projectOwner } from '../access/operator-access.js';
import { operatorCaller } from '../access/operator-caller.js';
import { ownAddress } from '../access/own-origin.js';
import { findHistory } from '../documents/read/find-history.js';
import { getDocument } from '../documents/read/get-document.js';
import { wrapReply } from '../documents/read/stored-documents.js';
import { DOCUMENT, NO_ROOM, SHOWN_DOCUMENT } from '../documents/reply/document-schema.js';
import { ETAG, withTag, withTagOfJson } from '../documents/reply/with-tag.js';
import { insertDocument } from '../documents/write/insert-document.js';
import { IF_MATCH, readIfMatch } from '../documents/write/if-match.js';
import { recoverDocument } from '../documents/write/recover-document.js';
import { deleteDocument, trashDocument } from '../documents/write/trash-document.js';
import { updateDocument } from '../documents/write/update-document.js';
import { requireWriteTarget, type WriteTarget } from '../documents/write/write-target.js';
import { listAttached, MAX_ATTACHED } from '../files/attached/list-attached.js';
import type { Project } from '../projects/project.js';
import { FILE_FIELDS } from './file-routes.js';
import { MAX_DOCUMENTS_AT_ONCE, writeEach } from './write-each.js';
import { requireNamed } from './require-named.js';

const PATH = '/api/projects/:projectId/collections/:collection/documents';
const USERS_BLOCKED = ['USERS_BLOCKED'];

type JsonObject = Record<string, unknown>;
const FIELDS: Schema<JsonObject> = claimed({ type: 'object', examples: [{ title: 'Hello', views: 0 }] });

const HISTORY = object(
  {
    isKept: { ...FLAG, description: 'False where no log was begun: nobody has followed the collection yet.' },
    since: { ...orNull(MOMENT), description: 'The oldest change of the collection that is kept.' },
    items: arrayOf(
      object({
        at: MOMENT,
        change: oneOf('created', 'changed', 'removed'),
        before: { ...orNull(SHOWN_DOCUMENT), description: 'What was kept of the document before the change.' },
        isPartial: { ...FLAG, description: 'Fields may be missing from `before`.' },
      }),
    ),
    next: { ...orNull(WHOLE), description: 'For `before` of the next request; null: there is nothing older.' },
  },
  'DocumentHistory',
);

const ATTACHED_FILE = object(
  { ...FILE_FIELDS, link: { ...orNull(TEXT), description: 'Null where its storage is not there any more.' } },
  'FileOfDocument',
);

interface InCollection {
  project: Project;
  target: WriteTarget;
}

/** An owner who writes documents, recorded under the words of the command; the documents are not written down. */
function writes(action: string): Access<InCollection> {
  const access = projectOwner(action, { withoutBody: true });
  return {
    ...access,
    async give(app, ctx) {
      const { project } = await access.give!(app, ctx);
      const { name } = await requireNamed(app, project, ctx.params.collection!);
      const target = await requireWriteTarget(app, operatorCaller(project), name);
      await app.replies.room({ project: project._id.toHexString(), address: '' });
      return { project, target };
    },
  };
}

const IDS = object({ ids: arrayOf(ID, { minItems: 1, maxItems: MAX_DOCUMENTS_AT_ONCE }) });
const EACH = object(
  { done: arrayOf(ID), refused: arrayOf(object({ id: ID, code: TEXT, message: TEXT })) },
  'DocumentsOneByOne',
);

const forEach = (
  path: 'trash' | 'recover',
  { id, summary, answer }: { id: string; summary: string; answer: string },
  write: (app: App, target: WriteTarget, document: string) => Promise<unknown>,
) =>
  route(`POST ${PATH}/${path}`, {
    id,
    summary,
    description: 'Each stands for itself: what is refused is told with its reason, the others are done.',
    access: writes('data delete'),
    command: path === 'trash' ? 'data delete' : 'data delete --undo',
    body: IDS,
    example: { ids: ['66f0c0ffee0ddba11c0de001'] },
    answers: ok(EACH, answer),
    refuses: { 403: USERS_BLOCKED },
    handle: ({ app, target, body: { ids } }) => writeEach(ids, (document) => write(app, target, document)),
  });

/** Single documents, for operators. Those with a fixed last word come first: no id is one. */
export const SINGLE_DOCUMENT_ROUTES = [
  route(`POST ${PATH}`, {
    id: 'storeDocument',
    summary: 'Insert a document',
    access: writes('data insert'),
    openBody: FIELDS,
    example: { title: 'Hello', views: 0 },
    answers: { ...created(DOCUMENT, 'Document stored'), headers: ETAG },
    refuses: {
      400: ['VALIDATION_FAILED', 'REFERENCE_MISSING', 'TOO_MANY_REFERENCES'],
      403: [...USERS_BLOCKED, 'QUOTA_EXCEEDED'],
      409: ['DUPLICATE_VALUE', 'DOCUMENT_CHANGING'],
      413: ['DOCUMENT_TOO_LARGE'],
      ...NO_ROOM,
    },
    handle: async ({ app, ctx, target, body }) => withTag(ctx, await insertDocument(app, target, body)),
  }),
  forEach(
    'trash',
    { id: 'trashDocuments', summary: `Move up to ${MAX_DOCUMENTS_AT_ONCE} documents to the trash`, answer: 'Trashed' },
    trashDocument,
  ),
  forEach(
    'recover',
    { id: 'recoverDocuments', summary: `Take up to ${MAX_DOCUMENTS_AT_ONCE} documents back`, answer: 'Recovered' },
    recoverDocument,
  ),
  route(`GET ${PATH}/:document`, {
    id: 'showDocument',
    summary: 'Get one document, from the trash too',
    access: PROJECT_OPERATOR,
    answers: { ...encoded(envelope(SHOWN_DOCUMENT), 'The document'), headers: ETAG },
    refuses: { 403: USERS_BLOCKED, ...NO_ROOM },
    async handle({ app, ctx, project, params }) {
      const { name } = await requireNamed(app, project, params.collection);
      const document = await getDocument(app, operatorCaller(project), name, params.document, 'include_deleted=true');
      return wrapReply('{"success":true,"data":', withTagOfJson(ctx, document), ',"message":"Document"}');
    },
  }),
  route(`GET ${PATH}/:document/history`, {
    id: 'showHistory',
    summary: 'Get the changes of a document that the change log has, the newest first',
    description:
      'The log is for those who follow changes: a long document is kept in part, older changes go, and on a MongoDB it has hardly more than the times. One request looks at 50,000 changes of the collection; `next` goes on as `before`.',
    access: PROJECT_OPERATOR,
    query: {
      before: parameter('`next` of the answer before', integer({ minimum: 1, maximum: 999_999_999_999 })),
      limit: wholeNumberParameter('Number of changes', 25, { max: 100 }),
    },
    answers: ok(HISTORY, 'History of the document'),
    refuses: { 400: ['INVALID_QUERY'], 403: USERS_BLOCKED },
    async handle({ app, project, params, query: { before, limit } }) {
      const collection = await requireNamed(app, project, params.collection);
      return findHistory(app, collection, params.document, { before: before ?? null, limit });
    },
  }),
  route(`GET ${PATH}/:document/files`, {
    id: 'listDocumentFiles',
    summary: `List the files of a document, ${MAX_ATTACHED} at most, each with a link of ten minutes`,
    access: PROJECT_OPERATOR,
    answers: ok(object({ items: arrayOf(ATTACHED_FILE) }), 'Files of the document'),
    refuses: { 403: USERS_BLOCKED, 503: ['STORAGE_UNAVAILABLE', 'STORAGE_REFUSED'] },
    async handle({ app, ctx, project, params }) {
      const collection = await requireNamed(app, project, params.collection);
      return { items: await listAttached(app, project, collection, params.document, ownAddress(app, ctx)) };
    },
  }),
  route(`PATCH ${PATH}/:document`, {
    id: 'changeDocument',
    summary: 'Change fields of a document',
    description:
      'Only the given fields change; a dotted key (`meta.views`) changes that nested one. `If-Match` takes its `ETag`, the `updatedAt` in quotes.',
    access: writes('data update'),
    headers: IF_MATCH,
    openBody: FIELDS,
    example: { title: 'Hello again', 'meta.views': 1 },
    answers: { ...ok(DOCUMENT, 'Document changed'), headers: ETAG },
    refuses: {
      400: ['VALIDATION_FAILED', 'INVALID_IF_MATCH', 'REFERENCE_MISSING', 'TOO_MANY_REFERENCES'],
      403: [...USERS_BLOCKED, 'OWNER_IMMUTABLE', 'QUOTA_EXCEEDED'],
      409: ['DUPLICATE_VALUE', 'DOCUMENT_CHANGING'],
      412: ['CHANGED_MEANWHILE'],
      413: ['DOCUMENT_TOO_LARGE'],
      ...NO_ROOM,
    },
    async handle({ app, ctx, target, params, body }) {
      const expected = readIfMatch(sentHeader(ctx, 'if-match'));
      return withTag(ctx, await updateDocument(app, target, params.document, body, { expected, takesOperators: true }));
    },
  }),
  route(`DELETE ${PATH}/:document`, {
    id: 'removeDocument',
    summary: 'Move a document to the trash, or delete it for good',
    access: writes('data delete'),
    headers: IF_MATCH,
    query: { permanent: flagParameter('Delete it for good at once, from the trash too') },
    answers: ok(object({ id: ID }), 'Document moved to trash'),
    refuses: {
      400: ['INVALID_QUERY', 'INVALID_IF_MATCH'],
      403: USERS_BLOCKED,
      409: ['DOCUMENT_CHANGING', 'DOCUMENT_REFERRED_TO'],
      412: ['CHANGED_MEANWHILE'],
    },
    async handle({ app, ctx, target, params, query: { permanent } }) {
      const expected = readIfMatch(sentHeader(ctx, 'if-match'));
      if (permanent) {
        return say(
          { id: await deleteDocument(app, target, params.document, { expected }) },
          'Document deleted for good',
        );
      }
      return { id: await trashDocument(app, target, params.document, { expected }) };
    },
  }),
  route(`POST ${PATH}/:document/recover`, {
    id: 'takeBackDocument',
    summary: 'Take a document back from the trash',
    access: writes('data delete'),
    command: 'data delete --undo',
    headers: IF_MATCH,
    answers: { ...ok(DOCUMENT, 'Document recovered from trash'), headers: ETAG },
    refuses: {
      400: ['INVALID_IF_MATCH', 'TOO_MANY_REFERENCES'],
      403: USERS_BLOCKED,
      409: ['DUPLICATE_VALUE', 'DOCUMENT_CHANGING', 'REFERENCE_MISSING'],
      412: ['CHANGED_MEANWHILE'],
      ...NO_ROOM,
    },
    async handle({ app, ctx, target, params }) {
      const expected = readIfMatch(sentHeader(ctx, 'if-match'));
      return withTag(ctx, await recoverDocument(app, target, params.document, expected));
    },
  }),
];
