import {
  arrayOf,
  created,
  flag,
  FLAG,
  ID,
  jsonAnswer,
  jsonBody,
  MOMENT,
  naming,
  object,
  ok,
  orNull,
  parameter,
  TEXT,
  WHOLE,
  type GroupDescription,
  type ParameterDescription,
  type Refusals,
  type Schema,
} from '../../http/routes/route-description.js';
import { READS_DOCUMENTS, WRITES_DOCUMENTS } from '../access/describe-access.js';
import { MAX_BULK_DOCUMENTS } from './bulk/insert-documents.js';
import { DEFAULT_LIMIT, MAX_LIMIT } from './query/parse-list-query.js';

const SYSTEM_FIELDS: Record<string, Schema> = {
  _id: ID,
  isDeleted: FLAG,
  deletedAt: orNull(MOMENT),
  createdAt: MOMENT,
  updatedAt: MOMENT,
};

/** A document as writes answer it: the service's own fields, and whatever else it has. */
const DOCUMENT: Schema = {
  title: 'Document',
  description: 'The fields of the collection, and those that the service keeps.',
  type: 'object',
  required: Object.keys(SYSTEM_FIELDS),
  properties: SYSTEM_FIELDS,
};

/** A document as reads answer it, where `fields` and `meta` may leave out what the service keeps. */
const SHOWN_DOCUMENT: Schema = {
  title: 'ShownDocument',
  description: 'A document, or the part of it that was asked for; Ref fields named by `populate` are documents.',
  type: 'object',
  required: ['_id'],
  properties: SYSTEM_FIELDS,
};

const NEW_DOCUMENT: Schema = { title: 'NewDocument', type: 'object', examples: [{ title: 'Hello', views: 0 }] };

/** Codes of the bounds that patterns have in one request. */
const TOO_MUCH_OF_PATTERNS = ['TOO_MANY_PATTERNS', 'PATTERNS_TOO_LONG', 'PATTERN_TOO_LARGE'];

const LIMIT: Schema = { type: 'integer', minimum: 1, maximum: MAX_LIMIT };
const PAGE: Schema = object(
  {
    items: arrayOf(SHOWN_DOCUMENT),
    total: WHOLE,
    page: { type: 'integer', minimum: 1 },
    nextCursor: { type: 'null' },
    limit: LIMIT,
  },
  'DocumentPage',
);
const CURSOR_PAGE: Schema = object(
  {
    items: arrayOf(SHOWN_DOCUMENT),
    total: { ...orNull(WHOLE), description: 'Only with `count=true`.' },
    cursor: TEXT,
    nextCursor: { ...orNull(TEXT), description: 'For the next page; null at the end.' },
    limit: LIMIT,
  },
  'DocumentCursorPage',
);

const COLLECTION_NAME: Schema = { type: 'string', pattern: '^[A-Za-z][A-Za-z0-9_-]{0,63}$', examples: ['posts'] };

const INCLUDE_DELETED = flag('Trashed documents too: whoever may read a collection may read its trash');
const PRESENTATION: Record<string, ParameterDescription> = {
  fields: parameter('Only these fields, comma-separated; `_id` besides', TEXT),
  populate: parameter('Ref fields to be replaced by their documents, comma-separated or repeated', TEXT),
  expand: parameter('Another name of `populate`', TEXT),
  meta: parameter('`false` leaves out isDeleted, deletedAt, createdAt, updatedAt', { type: 'boolean', default: true }),
  include_deleted: INCLUDE_DELETED,
};
const IDEMPOTENCY_KEY = {
  'idempotency-key': parameter(
    'Makes the request safe to repeat for 24 hours: the same key and body store nothing more and get the first answer again',
    { type: 'string', minLength: 1, maxLength: 255 },
  ),
};

const INSERT_REFUSALS: Refusals = {
  400: ['VALIDATION_FAILED', 'INVALID_IDEMPOTENCY_KEY'],
  403: ['OWNER_MISMATCH'],
  409: ['DUPLICATE_VALUE'],
  422: ['IDEMPOTENCY_KEY_REUSED'],
};
/** Too many large replies are under way. */
const NO_ROOM: Refusals = { 503: ['BUSY'] };
const UPDATE = {
  access: WRITES_DOCUMENTS,
  description:
    'PUT and PATCH do the same: only the given fields change, a dotted key (`meta.views`) changes that nested one. The owner field cannot be changed.',
  body: jsonBody(
    {
      title: 'DocumentChanges',
      type: 'object',
      minProperties: 1,
      examples: [{ title: 'Hello again', 'meta.views': 1 }],
    },
    { title: 'Hello again', 'meta.views': 1 },
  ),
  answers: { 200: jsonAnswer('The updated document', object({ message: { const: 'Updated' }, data: DOCUMENT })) },
  refuses: {
    400: ['VALIDATION_FAILED'],
    403: ['OWNER_MISMATCH', 'OWNER_IMMUTABLE'],
    409: ['DUPLICATE_VALUE', 'DOCUMENT_CHANGING'],
    413: ['DOCUMENT_TOO_LARGE'],
    ...NO_ROOM,
  },
};

/** As in read-routes.ts and write-routes.ts. */
export const DOCUMENT_ROUTES: GroupDescription = {
  prefix: '/api/data',
  tag: 'Documents',
  about: 'JSON documents of registered collections. The collection `users` is reached through `/api/userAuth` alone.',
  path: {
    collectionName: naming('Name of a registered collection', 'COLLECTION_NOT_FOUND', COLLECTION_NAME),
    id: {
      description: 'Id of the document',
      schema: { type: 'string', pattern: '^[0-9a-fA-F]{24}$' },
      refuses: { 400: ['INVALID_ID'], 404: ['DOCUMENT_NOT_FOUND'] },
    },
  },
  routes: {
    'GET /:collectionName': {
      id: 'listDocuments',
      summary: 'List documents, filtered, sorted, in pages',
      description:
        'Every other parameter is a filter: `field=value`, or a field with `_gt`, `_gte`, `_lt`, `_lte`, `_ne`, `_in` (comma-separated), `_exists` (true or false), `_regex` (case-insensitive, at most 128 characters). Several are AND-ed.',
      access: READS_DOCUMENTS,
      query: {
        page: parameter('Which page, from 1', { type: 'integer', minimum: 1, default: 1 }),
        limit: parameter(`Documents of a page; more than ${MAX_LIMIT} counts as ${MAX_LIMIT}`, {
          type: 'integer',
          minimum: 1,
          default: DEFAULT_LIMIT,
        }),
        skip: parameter('Documents to pass over, instead of `page`', WHOLE),
        sort: parameter('Fields to sort by, comma-separated; `-field` descends', {
          type: 'string',
          default: '-createdAt',
        }),
        cursor: parameter(
          'Pages that stay right while documents come and go: `start` for the first, then the `nextCursor` of the reply',
          TEXT,
        ),
        count: flag('Only the number of matching documents; with `cursor` the total besides the page'),
        ...PRESENTATION,
        filter: {
          description: 'Filters by the fields of the collection',
          schema: {
            type: 'object',
            additionalProperties: { type: 'string' },
            examples: [{ status: 'live', views_gte: '10' }],
          },
          isOpen: true,
        },
      },
      answers: ok('A page, or with `count=true` the number of documents', {
        anyOf: [PAGE, CURSOR_PAGE, object({ count: WHOLE }, 'DocumentCount')],
      }),
      refuses: {
        400: [
          'INVALID_QUERY',
          'INVALID_CURSOR',
          'QUERY_TIMEOUT',
          'QUERY_TOO_LARGE',
          'RESULT_TOO_LARGE',
          ...TOO_MUCH_OF_PATTERNS,
        ],
        ...NO_ROOM,
      },
    },
    'GET /:collectionName/:id': {
      id: 'getDocument',
      summary: 'Get one document',
      access: READS_DOCUMENTS,
      query: PRESENTATION,
      answers: { 200: jsonAnswer('The document itself', SHOWN_DOCUMENT) },
      refuses: { 400: ['INVALID_QUERY', 'QUERY_TIMEOUT', 'RESULT_TOO_LARGE'], ...NO_ROOM },
    },
    'POST /:collectionName/aggregate': {
      id: 'aggregateDocuments',
      summary: 'Run an aggregation pipeline',
      description:
        'MongoDB’s aggregation syntax, with the stages and operators that read. Trashed documents and those of other users are left out before the first stage, in joined collections too.',
      access: READS_DOCUMENTS,
      query: { include_deleted: INCLUDE_DELETED },
      body: jsonBody(
        {
          type: 'object',
          required: ['pipeline'],
          properties: { pipeline: { type: 'array', minItems: 1, maxItems: 100, items: { type: 'object' } } },
        },
        { pipeline: [{ $match: { status: 'live' } }, { $group: { _id: '$author', posts: { $sum: 1 } } }] },
      ),
      answers: ok('What comes out of the last stage', arrayOf({ type: 'object' })),
      refuses: {
        400: [
          'INVALID_PIPELINE',
          'BLOCKED_STAGE',
          'INVALID_QUERY',
          'QUERY_TIMEOUT',
          'QUERY_TOO_LARGE',
          'RESULT_TOO_LARGE',
          'USERS_BLOCKED',
          ...TOO_MUCH_OF_PATTERNS,
          'TOO_MANY_VALUES',
          'TOO_MANY_BRANCHES',
        ],
        ...NO_ROOM,
      },
    },
    'POST /:collectionName': {
      id: 'insertDocument',
      summary: 'Insert a document',
      access: WRITES_DOCUMENTS,
      headers: IDEMPOTENCY_KEY,
      body: jsonBody(NEW_DOCUMENT, { title: 'Hello', views: 0 }),
      answers: { 201: jsonAnswer('The stored document itself', DOCUMENT) },
      refuses: { ...INSERT_REFUSALS, ...NO_ROOM },
    },
    'POST /:collectionName/bulk': {
      id: 'insertDocuments',
      summary: `Insert up to ${MAX_BULK_DOCUMENTS} documents, all or none`,
      access: WRITES_DOCUMENTS,
      headers: IDEMPOTENCY_KEY,
      body: jsonBody(arrayOf(NEW_DOCUMENT, { minItems: 1, maxItems: MAX_BULK_DOCUMENTS }), [
        { title: 'One' },
        { title: 'Two' },
      ]),
      answers: created('Their ids, in the order of the request', object({ insertedCount: WHOLE, ids: arrayOf(ID) })),
      refuses: {
        ...INSERT_REFUSALS,
        409: [...INSERT_REFUSALS[409]!, 'REQUEST_UNDER_WAY', 'BATCH_ABANDONED'],
        413: ['BATCH_TOO_LARGE'],
      },
    },
    'PATCH /:collectionName/:id/recover': {
      id: 'recoverDocument',
      summary: 'Take a document back from the trash',
      access: WRITES_DOCUMENTS,
      answers: ok('The document', DOCUMENT),
      refuses: {
        400: ['VALIDATION_FAILED'],
        403: ['OWNER_MISMATCH'],
        409: ['DUPLICATE_VALUE', 'DOCUMENT_CHANGING'],
        ...NO_ROOM,
      },
    },
    'PUT /:collectionName/:id': { id: 'putDocument', summary: 'Change fields of a document (as PATCH)', ...UPDATE },
    'PATCH /:collectionName/:id': { id: 'updateDocument', summary: 'Change fields of a document', ...UPDATE },
    'DELETE /:collectionName/:id': {
      id: 'deleteDocument',
      summary: 'Move a document to the trash, or delete it for good',
      access: WRITES_DOCUMENTS,
      query: { permanent: flag('Delete it for good at once, from the trash too') },
      answers: ok('Gone from every list', object({ id: ID })),
      refuses: {
        400: ['INVALID_QUERY'],
        403: ['OWNER_MISMATCH'],
        409: ['DOCUMENT_CHANGING'],
      },
    },
  },
};
