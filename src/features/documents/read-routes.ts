import { clientSignal } from '../../http/requests/client-signal.js';
import { encoded, envelope, flagParameter, own, parameter, route, type Route } from '../../http/routes/route.js';
import {
  literal,
  FLAG,
  anyOf,
  arrayOf,
  boolean,
  withDefault,
  integer,
  mapOf,
  NULL,
  object,
  OBJECT,
  openObject,
  orNull,
  type Schema,
  text,
  TEXT,
  WHOLE,
} from '../../platform/schema/schema.js';
import { READS_DOCUMENTS } from '../access/key-access.js';
import { MAX_STAGES } from './pipeline/guard-pipeline.js';
import { listSuffixes } from './query/filter-operators.js';
import { DEFAULT_LIMIT, MAX_LIMIT } from './query/parse-list-query.js';
import { aggregateDocuments } from './read/aggregate-documents.js';
import { getDocument, getDocumentNow } from './read/get-document.js';
import { encodeList, encodeListNow } from './read/list-documents.js';
import { listEnvelope } from './read/stored-documents.js';
import { wrapReply, type EncodedReply, withTagOfJson } from './reply/encoded-reply.js';
import { NO_ROOM, SHOWN_DOCUMENT } from './reply/present-document.js';

const FROM_ONE = integer({ minimum: 1 });
const LIMIT = integer({ minimum: 1, maximum: MAX_LIMIT });
const PAGE = object(
  {
    items: arrayOf(SHOWN_DOCUMENT),
    total: WHOLE,
    page: FROM_ONE,
    nextCursor: NULL,
    limit: LIMIT,
  },
  'DocumentPage',
);
const CURSOR_PAGE = object(
  {
    items: arrayOf(SHOWN_DOCUMENT),
    total: { ...WHOLE, description: 'When the walk began; with `count=true` at this moment.' },
    cursor: TEXT,
    nextCursor: { ...orNull(TEXT), description: 'For the next page; null at the end.' },
    limit: LIMIT,
  },
  'DocumentCursorPage',
);
const FILTER = mapOf(TEXT, { examples: [{ status: 'live', views_gte: '10' }] });

const INCLUDE_DELETED = flagParameter('Trashed documents too: whoever may read a collection may read its trash');
const TRASH_OF_LIST = {
  description: '`true`: trashed documents too, `only`: these alone. Whoever may read a collection may read its trash',
  schema: withDefault(anyOf(FLAG, literal('only')), false),
};
const PRESENTATION = {
  fields: parameter('Only these fields, comma-separated; `_id` besides', TEXT),
  populate: parameter('Ref fields to be replaced by their documents, comma-separated or repeated', TEXT),
  expand: parameter('Another name of `populate`', TEXT),
  meta: parameter('`false` leaves out isDeleted, deletedAt, createdAt, updatedAt', boolean({ default: true })),
  include_deleted: INCLUDE_DELETED,
};
/** Codes of the bounds that patterns have in one request. */
const TOO_MUCH_OF_PATTERNS = ['TOO_MANY_PATTERNS', 'PATTERNS_TOO_LONG', 'PATTERN_TOO_LARGE'];

const OR = parameter(
  'Alternatives, of which one must match: a JSON list of objects with filters, all of which must match',
  text({ examples: ['[{"status":"open"},{"views_gt":3}]'] }),
);

/** How the documents of a list or of an export are narrowed. */
export const FILTERING = {
  description: `Every other parameter is a filter: \`field=value\`, or a field with ${listSuffixes()}. All of them must match; with \`or\`, one of its alternatives besides.`,
  ownQuery: {
    include_deleted: TRASH_OF_LIST,
    or: OR,
    filter: { ...parameter('Filters by the fields of the collection', FILTER), isOpen: true },
  },
  errors: { 400: ['INVALID_QUERY', ...TOO_MUCH_OF_PATTERNS], ...NO_ROOM },
};

/** How a list is asked for and answered, for every caller. */
export const LISTING = {
  description: FILTERING.description,
  // Parsed with its filters, by the fields of the collection.
  ownQuery: {
    page: parameter('Which page, from 1', { ...FROM_ONE, default: 1 }),
    limit: {
      ...parameter(`Documents of a page; more than ${MAX_LIMIT} counts as ${MAX_LIMIT}`, {
        ...FROM_ONE,
        default: DEFAULT_LIMIT,
      }),
      cap: MAX_LIMIT,
    },
    skip: parameter('Documents to pass over, instead of `page`', WHOLE),
    sort: parameter(
      'Fields to sort by, comma-separated; `-field` descends',
      text({ default: '-createdAt', examples: ['-views'] }),
    ),
    cursor: parameter(
      'Pages that stay right while documents come and go: `start` for the first, then the `nextCursor` of the reply',
      TEXT,
    ),
    count: flagParameter('Only the number of matching documents; with `cursor` the total is counted again'),
    ...PRESENTATION,
    include_deleted: TRASH_OF_LIST,
    or: OR,
    filter: FILTERING.ownQuery.filter,
  },
  answers: encoded(
    envelope(anyOf(PAGE, CURSOR_PAGE, object({ count: WHOLE }, 'DocumentCount'))),
    'A page, or with `count=true` the number of documents',
  ),
  errors: {
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
};

const AGGREGATION: Schema<{ pipeline?: unknown }> = openObject({
  pipeline: arrayOf(OBJECT, { minItems: 1, maxItems: MAX_STAGES }),
});

/** How a pipeline is given and answered, for every caller. */
export const AGGREGATING = {
  bodySize: 'many' as const,
  description:
    'MongoDB’s aggregation syntax, with the stages and operators that read. Trashed documents and those of other users are left out before the first stage, in joined collections too.',
  query: { include_deleted: INCLUDE_DELETED },
  openBody: AGGREGATION,
  example: { pipeline: [{ $match: { status: 'live' } }, { $group: { _id: '$author', posts: { $sum: 1 } } }] },
  answers: encoded(envelope(arrayOf(OBJECT)), 'What comes out of the last stage'),
  errors: {
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
};

/** The results of a pipeline in the envelope. */
const aggregationEnvelope = (results: EncodedReply): EncodedReply =>
  wrapReply('{"success":true,"data":', results, ',"message":"Aggregation completed"}');

export const LIST_DOCUMENTS = route('GET /api/data/:collectionName', {
  ...LISTING,
  id: 'listDocuments',
  summary: 'List documents, filtered, sorted, in pages',
  access: READS_DOCUMENTS,
  handle({ app, ctx, caller, params: { collectionName } }) {
    const now = encodeListNow(app, caller, collectionName, ctx.querystring);
    return now ?? encodeList(app, caller, collectionName, ctx.querystring, clientSignal(ctx)).then(listEnvelope);
  },
});

export const GET_DOCUMENT = route('GET /api/data/:collectionName/:id', {
  id: 'getDocument',
  summary: 'Get one document',
  access: READS_DOCUMENTS,
  ownQuery: PRESENTATION,
  headers: { 'if-none-match': parameter('`ETag` of a cached copy', TEXT) },
  answers: [
    {
      ...encoded(SHOWN_DOCUMENT, 'The document itself'),
      headers: { ETag: '`updatedAt` in quotes, where shown' },
    },
    own(304, 'The copy is good'),
  ],
  errors: { 400: ['INVALID_QUERY', 'QUERY_TIMEOUT', 'RESULT_TOO_LARGE'], ...NO_ROOM },
  handle({ app, ctx, caller, params: { collectionName, id } }) {
    const { querystring } = ctx;
    const copies = ctx.req.headers['if-none-match'];
    const now = getDocumentNow(app, caller, collectionName, id, querystring, copies);
    return now
      ? withTagOfJson(now)
      : getDocument(app, caller, collectionName, id, querystring, copies).then(withTagOfJson);
  },
});

export const AGGREGATE_DOCUMENTS = route('POST /api/data/:collectionName/aggregate', {
  ...AGGREGATING,
  id: 'aggregateDocuments',
  summary: 'Run an aggregation pipeline',
  access: READS_DOCUMENTS,
  async handle({ app, ctx, caller, params, query, body: { pipeline } }) {
    return aggregationEnvelope(
      await aggregateDocuments(app, caller, params.collectionName, pipeline, {
        includeDeleted: query.include_deleted,
        signal: clientSignal(ctx),
      }),
    );
  },
});

export const READ_ROUTES: readonly Route[] = [LIST_DOCUMENTS, GET_DOCUMENT, AGGREGATE_DOCUMENTS];
