import { created, flagParameter, ok, parameter, plain, route, say, type Refusals } from '../../http/routes/route.js';
import { arrayOf, ID, object, oneOf, text, WHOLE, type Schema } from '../../platform/schema/schema.js';
import { insertDocuments, MAX_BULK_DOCUMENTS } from './bulk/insert-documents.js';
import { DOCUMENT } from './reply/document-schema.js';
import { MAX_KEY_CHARACTERS, readIdempotencyKey } from './write/idempotency.js';
import { insertDocument } from './write/insert-document.js';
import { recoverDocument } from './write/recover-document.js';
import { deleteDocument, trashDocument } from './write/trash-document.js';
import { updateDocument } from './write/update-document.js';
import { WRITES_AND_SHOWS, WRITES_DOCUMENTS } from './write/write-access.js';

type JsonObject = Record<string, unknown>;

const NEW_DOCUMENT: Schema<JsonObject> = {
  title: 'NewDocument',
  type: 'object',
  examples: [{ title: 'Hello', views: 0 }],
};
const NEW_DOCUMENTS: Schema = arrayOf(NEW_DOCUMENT, { minItems: 1, maxItems: MAX_BULK_DOCUMENTS });
const DOCUMENT_CHANGES: Schema<JsonObject> = {
  title: 'DocumentChanges',
  type: 'object',
  minProperties: 1,
  examples: [{ title: 'Hello again', 'meta.views': 1 }],
};

const IDEMPOTENCY_KEY = {
  'idempotency-key': parameter(
    'Makes the request safe to repeat for 24 hours: the same key and body store nothing more and get the first answer again',
    text({ minLength: 1, maxLength: MAX_KEY_CHARACTERS }),
  ),
};
const INSERT_REFUSALS = {
  400: ['VALIDATION_FAILED', 'INVALID_IDEMPOTENCY_KEY'],
  403: ['OWNER_MISMATCH', 'QUOTA_EXCEEDED'],
  409: ['DUPLICATE_VALUE'],
  422: ['IDEMPOTENCY_KEY_REUSED'],
};
/** Too many large replies are under way. */
const NO_ROOM: Refusals = { 503: ['BUSY'] };

export const insertDocumentRoute = route({
  method: 'POST',
  path: '/api/data/:collectionName',
  id: 'insertDocument',
  summary: 'Insert a document',
  access: WRITES_AND_SHOWS,
  headers: IDEMPOTENCY_KEY,
  openBody: NEW_DOCUMENT,
  example: { title: 'Hello', views: 0 },
  answers: plain(DOCUMENT, 'The stored document itself', 201),
  refuses: { ...INSERT_REFUSALS, ...NO_ROOM },
  handle({ app, ctx, target, body }) {
    return insertDocument(app, target, body, readIdempotencyKey(ctx.get('idempotency-key')));
  },
});

export const insertDocumentsRoute = route({
  method: 'POST',
  path: '/api/data/:collectionName/bulk',
  id: 'insertDocuments',
  summary: `Insert up to ${MAX_BULK_DOCUMENTS} documents, all or none`,
  access: WRITES_DOCUMENTS,
  headers: IDEMPOTENCY_KEY,
  openBody: NEW_DOCUMENTS,
  example: [{ title: 'One' }, { title: 'Two' }],
  answers: created(object({ insertedCount: WHOLE, ids: arrayOf(ID) }), 'Their ids, in the order of the request'),
  refuses: {
    ...INSERT_REFUSALS,
    409: [...INSERT_REFUSALS[409], 'REQUEST_UNDER_WAY', 'BATCH_ABANDONED'],
    413: ['BATCH_TOO_LARGE'],
  },
  async handle({ app, ctx, target, body }) {
    const data = await insertDocuments(app, target, body, readIdempotencyKey(ctx.get('idempotency-key')));
    return say(data, `Inserted ${data.insertedCount}`);
  },
});

export const recoverDocumentRoute = route({
  method: 'PATCH',
  path: '/api/data/:collectionName/:id/recover',
  id: 'recoverDocument',
  summary: 'Take a document back from the trash',
  access: WRITES_AND_SHOWS,
  answers: ok(DOCUMENT, 'Document recovered from trash'),
  refuses: {
    400: ['VALIDATION_FAILED'],
    403: ['OWNER_MISMATCH'],
    409: ['DUPLICATE_VALUE', 'DOCUMENT_CHANGING'],
    ...NO_ROOM,
  },
  handle: ({ app, target, params }) => recoverDocument(app, target, params.id),
});

const UPDATE_REFUSALS: Refusals = {
  400: ['VALIDATION_FAILED'],
  403: ['OWNER_MISMATCH', 'OWNER_IMMUTABLE', 'QUOTA_EXCEEDED'],
  409: ['DUPLICATE_VALUE', 'DOCUMENT_CHANGING'],
  413: ['DOCUMENT_TOO_LARGE'],
  ...NO_ROOM,
};

const changeDocument = (method: 'PUT' | 'PATCH', id: string, summary: string) =>
  route({
    method,
    path: '/api/data/:collectionName/:id',
    id,
    summary,
    description:
      'PUT and PATCH do the same: only the given fields change, a dotted key (`meta.views`) changes that nested one. The owner field cannot be changed.',
    access: WRITES_AND_SHOWS,
    openBody: DOCUMENT_CHANGES,
    example: { title: 'Hello again', 'meta.views': 1 },
    answers: plain(object({ message: oneOf('Updated'), data: DOCUMENT }), 'The updated document'),
    refuses: UPDATE_REFUSALS,
    async handle({ app, target, params, body }) {
      return { message: 'Updated' as const, data: await updateDocument(app, target, params.id, body) };
    },
  });

export const putDocumentRoute = changeDocument('PUT', 'putDocument', 'Change fields of a document (as PATCH)');
export const updateDocumentRoute = changeDocument('PATCH', 'updateDocument', 'Change fields of a document');

export const deleteDocumentRoute = route({
  method: 'DELETE',
  path: '/api/data/:collectionName/:id',
  id: 'deleteDocument',
  summary: 'Move a document to the trash, or delete it for good',
  access: WRITES_DOCUMENTS,
  query: { permanent: flagParameter('Delete it for good at once, from the trash too') },
  answers: ok(object({ id: ID }), 'Document moved to trash'),
  refuses: {
    400: ['INVALID_QUERY'],
    403: ['OWNER_MISMATCH'],
    409: ['DOCUMENT_CHANGING'],
  },
  async handle({ app, target, params, query: { permanent } }) {
    if (permanent) return say({ id: await deleteDocument(app, target, params.id) }, 'Document permanently deleted');
    return { id: await trashDocument(app, target, params.id) };
  },
});
