import { IDEMPOTENCY_KEY, readIdempotencyKey, sentHeader } from '../../http/routes/idempotency-key.js';
import { readTextParameter } from '../../http/routes/read-parameter.js';
import { invalid } from '../../errors.js';
import { clientSignal } from '../../http/requests/client-signal.js';
import {
  created,
  flagParameter,
  ok,
  parameter,
  plain,
  route,
  type Route,
  say,
  type RouteErrors,
} from '../../http/routes/route.js';
import { arrayOf, claimed, FLAG, ID, object, oneOf, type Schema, TEXT, WHOLE } from '../../platform/schema/schema.js';
import { withHooks } from '../access/describe-access.js';
import { SECRET_KEY } from '../access/key-access.js';
import { insertDocuments, MAX_BULK_DOCUMENTS } from './bulk/insert-documents.js';
import { MAX_MATCHING, removeMatching, updateMatching } from './bulk/write-matching.js';
import { parseBulkQuery } from './query/parse-bulk-query.js';
import { FILTERING } from './read-routes.js';
import { DOCUMENT, NO_ROOM } from './reply/present-document.js';
import { ETAG, withTag } from './reply/encoded-reply.js';
import { IF_MATCH, readIfMatch } from './write/if-match.js';
import { insertDocument } from './write/insert-document.js';
import { recoverDocument, deleteDocument, trashDocument } from './write/change-state.js';
import { updateDocument } from './write/update-document.js';
import { insertOrUpdate } from './write/insert-or-update.js';
import { WRITES_AND_SHOWS, WRITES_DOCUMENTS } from './write/write-target.js';
import { requireWriteTarget } from './write/write-target.js';

type JsonObject = Record<string, unknown>;

const NEW_DOCUMENT: Schema<JsonObject> = claimed({
  title: 'NewDocument',
  type: 'object',
  examples: [{ title: 'Hello', views: 0 }],
});
const NEW_DOCUMENTS: Schema = arrayOf(NEW_DOCUMENT, { minItems: 1, maxItems: MAX_BULK_DOCUMENTS });
const DOCUMENT_CHANGES: Schema<JsonObject> = claimed({
  title: 'DocumentChanges',
  type: 'object',
  minProperties: 1,
  examples: [{ title: 'Hello again', 'meta.views': 1 }],
});

const CHANGE_HEADERS = { ...IF_MATCH, ...IDEMPOTENCY_KEY };
/** What references add (writes.md 3). */
const REFERENCES = { 400: ['REFERENCE_MISSING', 'TOO_MANY_REFERENCES'] } as const;
const INSERT_ERRORS = {
  400: ['VALIDATION_FAILED', 'INVALID_IDEMPOTENCY_KEY', ...REFERENCES[400]],
  403: ['OWNER_MISMATCH', 'QUOTA_EXCEEDED'],
  409: ['DUPLICATE_VALUE', 'DOCUMENT_CHANGING'],
  422: ['IDEMPOTENCY_KEY_REUSED'],
};

const UPDATE_ERRORS: RouteErrors = {
  400: ['VALIDATION_FAILED', 'CONFLICTING_PATHS', 'INVALID_IF_MATCH', 'INVALID_IDEMPOTENCY_KEY', ...REFERENCES[400]],
  403: ['OWNER_MISMATCH', 'OWNER_IMMUTABLE', 'QUOTA_EXCEEDED'],
  409: ['DUPLICATE_VALUE', 'DOCUMENT_CHANGING'],
  412: ['CHANGED_MEANWHILE'],
  413: ['DOCUMENT_TOO_LARGE'],
  422: ['IDEMPOTENCY_KEY_REUSED'],
  ...NO_ROOM,
};

const changeDocument = (method: 'PUT' | 'PATCH', id: string, summary: string) =>
  route(`${method} /api/data/:collectionName/:id`, {
    id,
    summary,
    description:
      'PUT and PATCH do the same: only the given fields change, a dotted key (`meta.views`) changes that nested one. `$inc`, `$mul`, `$min`, `$max`, `$push`, `$addToSet` and `$pull` take an object of paths and values, `$unset` a list of paths; they change what is stored at that moment, and the result has to fit. The owner field cannot be changed.',
    access: WRITES_AND_SHOWS,
    headers: CHANGE_HEADERS,
    openBody: DOCUMENT_CHANGES,
    example: { title: 'Hello again', 'meta.views': 1 },
    answers: {
      ...plain(object({ message: oneOf('Updated'), data: DOCUMENT }), 'The updated document'),
      headers: ETAG,
    },
    errors: UPDATE_ERRORS,
    handle({ app, ctx, target, params, body }) {
      const expected = readIfMatch(sentHeader(ctx, 'if-match'));
      const options = { expected, takesOperators: true, idempotencyKey: readIdempotencyKey(ctx) };
      const updating = updateDocument(app, target, params.id, body, options);
      return updating.then((data) => ({ message: 'Updated' as const, data: withTag(ctx, data) }));
    },
  });

const MATCHING = {
  description: `Every other parameter is a filter, as of lists; at least one is needed. At most ${MAX_MATCHING} documents, in batches that are each carried out whole; a refusal ends it and says how many were changed before.`,
  access: withHooks(SECRET_KEY),
  ownQuery: {
    confirm: parameter(
      'The number of documents that match: 409 with that number where another or none is given',
      WHOLE,
    ),
    filter: FILTERING.ownQuery.filter,
  },
};
const MATCHING_ERRORS = {
  400: ['INVALID_QUERY', 'FILTER_REQUIRED', 'QUERY_TIMEOUT', ...FILTERING.errors[400]],
  403: ['USERS_BLOCKED'],
  409: ['COUNT_DIFFERS', 'DOCUMENT_CHANGING', 'DOCUMENT_REFERRED_TO'],
  413: ['TOO_MANY_DOCUMENTS'],
};

export const INSERT_DOCUMENT = route('POST /api/data/:collectionName', {
  id: 'insertDocument',
  summary: 'Insert a document',
  access: WRITES_AND_SHOWS,
  ownQuery: {
    upsert: parameter('Unique fields, separated by commas: a document with the same values is updated instead', TEXT),
  },
  headers: IDEMPOTENCY_KEY,
  openBody: NEW_DOCUMENT,
  example: { title: 'Hello', views: 0 },
  answers: [
    { ...plain(DOCUMENT, 'The stored document itself', 201), headers: ETAG },
    { ...plain(DOCUMENT, 'The updated document itself'), headers: ETAG },
  ],
  errors: {
    ...INSERT_ERRORS,
    400: [...INSERT_ERRORS[400], 'INVALID_QUERY', 'INVALID_KEY', 'INVALID_IF_MATCH'],
    403: [...INSERT_ERRORS[403], 'OWNER_IMMUTABLE'],
    404: ['DOCUMENT_NOT_FOUND'],
    413: ['DOCUMENT_TOO_LARGE'],
    ...NO_ROOM,
  },
  handle({ app, ctx, target, body }) {
    const key = readIdempotencyKey(ctx);
    const by = ctx.querystring === '' ? undefined : readTextParameter(ctx.query, 'upsert');
    if (by !== undefined) {
      if (sentHeader(ctx, 'if-match') !== undefined) {
        throw invalid('INVALID_IF_MATCH', 'An upsert takes no If-Match: update the document by its id');
      }
      const upserting = insertOrUpdate(app, target, by.split(','), body, key);
      return upserting.then(({ isNew, document }) => say(withTag(ctx, document), undefined, isNew ? 201 : 200));
    }
    const inserting = insertDocument(app, target, body, key);
    return inserting.then((document) => withTag(ctx, document));
  },
});

export const RECOVER_DOCUMENT = route('PATCH /api/data/:collectionName/:id/recover', {
  id: 'recoverDocument',
  summary: 'Take a document back from the trash',
  access: WRITES_AND_SHOWS,
  headers: IF_MATCH,
  answers: { ...ok(DOCUMENT, 'Document recovered from trash'), headers: ETAG },
  errors: {
    400: ['VALIDATION_FAILED', 'INVALID_IF_MATCH', ...REFERENCES[400]],
    403: ['OWNER_MISMATCH'],
    409: ['DUPLICATE_VALUE', 'DOCUMENT_CHANGING', 'REFERENCE_MISSING'],
    412: ['CHANGED_MEANWHILE'],
    ...NO_ROOM,
  },
  async handle({ app, ctx, target, params }) {
    const expected = readIfMatch(sentHeader(ctx, 'if-match'));
    return withTag(ctx, await recoverDocument(app, target, params.id, expected));
  },
});

export const DELETE_DOCUMENT = route('DELETE /api/data/:collectionName/:id', {
  id: 'deleteDocument',
  summary: 'Move a document to the trash, or delete it for good',
  access: WRITES_DOCUMENTS,
  headers: CHANGE_HEADERS,
  query: { permanent: flagParameter('Delete it for good at once, from the trash too') },
  answers: ok(object({ id: ID }), 'Document moved to trash'),
  errors: {
    400: ['INVALID_QUERY', 'INVALID_IF_MATCH', 'INVALID_IDEMPOTENCY_KEY'],
    403: ['OWNER_MISMATCH'],
    409: ['DOCUMENT_CHANGING', 'DOCUMENT_REFERRED_TO'],
    412: ['CHANGED_MEANWHILE'],
    422: ['IDEMPOTENCY_KEY_REUSED'],
  },
  async handle({ app, ctx, target, params, query: { permanent } }) {
    const expected = readIfMatch(sentHeader(ctx, 'if-match'));
    const options = { expected, idempotencyKey: readIdempotencyKey(ctx) };
    if (permanent) {
      return say({ id: await deleteDocument(app, target, params.id, options) }, 'Document permanently deleted');
    }
    return { id: await trashDocument(app, target, params.id, options) };
  },
});

export const UPDATE_DOCUMENT = changeDocument('PATCH', 'updateDocument', 'Change fields of a document');

export const WRITE_ROUTES: readonly Route[] = [
  INSERT_DOCUMENT,
  route('POST /api/data/:collectionName/bulk', {
    id: 'insertDocuments',
    bodySize: 'many',
    summary: `Insert up to ${MAX_BULK_DOCUMENTS} documents, all or none`,
    access: WRITES_DOCUMENTS,
    headers: IDEMPOTENCY_KEY,
    openBody: NEW_DOCUMENTS,
    example: [{ title: 'One' }, { title: 'Two' }],
    answers: created(object({ insertedCount: WHOLE, ids: arrayOf(ID) }), 'Their ids, in the order of the request'),
    errors: {
      ...INSERT_ERRORS,
      413: ['BATCH_TOO_LARGE'],
    },
    async handle({ app, ctx, target, body }) {
      const data = await insertDocuments(app, target, body, readIdempotencyKey(ctx));
      return say(data, `Inserted ${data.insertedCount}`);
    },
  }),
  route('PATCH /api/data/:collectionName', {
    ...MATCHING,
    id: 'updateMatching',
    summary: 'Change every document that a filter matches',
    openBody: DOCUMENT_CHANGES,
    example: { status: 'archived' },
    answers: ok(object({ changed: WHOLE }), 'How many were changed'),
    errors: {
      ...MATCHING_ERRORS,
      400: [...MATCHING_ERRORS[400], 'VALIDATION_FAILED', 'CONFLICTING_PATHS', ...REFERENCES[400]],
      403: [...MATCHING_ERRORS[403], 'OWNER_IMMUTABLE', 'QUOTA_EXCEEDED'],
      409: [...MATCHING_ERRORS[409], 'DUPLICATE_VALUE'],
      413: [...MATCHING_ERRORS[413], 'DOCUMENT_TOO_LARGE'],
    },
    async handle({ app, ctx, caller, params, body }) {
      const place = await requireWriteTarget(app, caller, params.collectionName);
      const query = parseBulkQuery(ctx.querystring, place.collection, false);
      const changed = await updateMatching(app, place, query, body, clientSignal(ctx));
      return say({ changed }, `Changed ${changed}`);
    },
  }),
  route('DELETE /api/data/:collectionName', {
    ...MATCHING,
    id: 'removeMatching',
    summary: 'Move every document that a filter matches to the trash, or delete them for good',
    ownQuery: {
      ...MATCHING.ownQuery,
      permanent: parameter('Delete them for good at once', FLAG),
      include_deleted: FILTERING.ownQuery.include_deleted,
    },
    answers: ok(object({ removed: WHOLE }), 'How many were removed'),
    errors: MATCHING_ERRORS,
    async handle({ app, ctx, caller, params }) {
      const place = await requireWriteTarget(app, caller, params.collectionName);
      const query = parseBulkQuery(ctx.querystring, place.collection, true);
      const removed = await removeMatching(app, place, query, clientSignal(ctx));
      return say({ removed }, `Removed ${removed}`);
    },
  }),
  RECOVER_DOCUMENT,
  changeDocument('PUT', 'putDocument', 'Change fields of a document (as PATCH)'),
  UPDATE_DOCUMENT,
  DELETE_DOCUMENT,
];
