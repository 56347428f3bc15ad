import { withHooks } from '../access/describe-access.js';
import type { App } from '../../app.js';
import {
  created,
  encoded,
  envelope,
  mountedAt,
  ok,
  parameter,
  route,
  wholeNumberParameter,
  flagParameter,
  naming,
  own,
  say,
  type Access,
  type RouteList,
} from '../../http/routes/route.js';
import {
  arrayOf,
  FLAG,
  ID,
  integer,
  MOMENT,
  object,
  oneOf,
  orNull,
  TEXT,
  WHOLE,
  ANYTHING,
  text,
} from '../../platform/schema/schema.js';
import { tenantOfCaller } from '../access/caller.js';
import { projectOwner } from '../access/operator-access.js';
import { ownAddress } from '../access/own-origin.js';
import {
  GET_DOCUMENT,
  AGGREGATE_DOCUMENTS,
  FILTERING,
  LIST_DOCUMENTS,
  LISTING,
  AGGREGATING,
} from '../documents/read-routes.js';
import { findHistory } from '../documents/read/find-history.js';
import { wrapReply, type EncodedReply, ETAG } from '../documents/reply/encoded-reply.js';
import { DOCUMENT, SHOWN_DOCUMENT } from '../documents/reply/present-document.js';
import { DELETE_DOCUMENT, INSERT_DOCUMENT, RECOVER_DOCUMENT, UPDATE_DOCUMENT } from '../documents/write-routes.js';
import { recoverDocument, trashDocument } from '../documents/write/change-state.js';
import { requireWriteTarget, type WriteTarget } from '../documents/write/write-target.js';
import { listAttached, MAX_ATTACHED } from '../files/attached/list-attached.js';
import { FILE_FIELDS } from './file-routes.js';
import { inCollection, READS, BROWSES, VIEW_AS, type InCollection } from './view-as.js';
import { AppError, invalid } from '../../errors.js';
import { Readable } from 'node:stream';
import { clientSignal } from '../../http/requests/client-signal.js';
import { inChunks } from '../../platform/database/in-chunks.js';
import { importDocuments } from '../documents/bulk/import-documents.js';
import { parseExportQuery } from '../documents/query/parse-list-query.js';
import { readExport } from '../documents/read/export-documents.js';
import { explainPipeline } from '../documents/read/aggregate-documents.js';
import { explainList } from '../documents/read/list-documents.js';

const MAX_DOCUMENTS_AT_ONCE = 500;
const AT_ONCE = 10;

interface WrittenEach {
  done: string[];
  refused: { id: string; code: string; message: string }[];
}

/**
 * Writes documents one by one, some at the same time; returns which were refused and why, in the order of the ids. An
 * unexpected error ends it: earlier ones are written.
 */
async function writeEach(ids: readonly string[], write: (id: string) => Promise<unknown>): Promise<WrittenEach> {
  const outcome: WrittenEach = { done: [], refused: [] };
  const wanted = [...new Set(ids)];
  for (let at = 0; at < wanted.length; at += AT_ONCE) {
    const some = wanted.slice(at, at + AT_ONCE);
    const refusals = await Promise.all(some.map((id) => write(id).then(() => null, asError)));
    some.forEach((id, place) => {
      const refusal = refusals[place];
      if (refusal) outcome.refused.push({ id, code: refusal.code, message: refusal.message });
      else outcome.done.push(id);
    });
  }
  return outcome;
}

function asError(error: unknown): AppError {
  if (error instanceof AppError) return error;
  throw error;
}

const DOCUMENTS = '/api/projects/:projectId/collections/:collection/documents';

const HISTORY = object(
  {
    isKept: { ...FLAG, description: 'False if the collection has no change log yet.' },
    since: { ...orNull(MOMENT), description: 'The oldest change in the log.' },
    items: arrayOf(
      object({
        at: MOMENT,
        change: oneOf('created', 'changed', 'removed'),
        before: { ...orNull(SHOWN_DOCUMENT), description: 'The document before the change, as far as it was kept.' },
        isPartial: { ...FLAG, description: 'Whether fields may be missing from `before`.' },
      }),
    ),
    next: { ...orNull(WHOLE), description: 'Send it as `before` in the next request; null at the end.' },
  },
  'DocumentHistory',
);

const ATTACHED_FILE = object(
  { ...FILE_FIELDS, link: { ...orNull(TEXT), description: 'Null if its storage no longer exists.' } },
  'FileOfDocument',
);

/** An owner who writes documents, recorded under the words of the command; the documents are not written down. */
function writes(action: string): Access<InCollection & { target: WriteTarget }> {
  const access = withHooks(inCollection(projectOwner(action, { withoutBody: true })));
  return {
    ...access,
    async give(app, ctx) {
      const given = await access.give!(app, ctx);
      const target = await requireWriteTarget(app, given.caller, given.collection.name);
      await app.replies.room(tenantOfCaller(given.caller));
      return { ...given, target };
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
  route(`POST ${DOCUMENTS}/${path}`, {
    id,
    summary,
    description: 'Errors are returned for each document; the others are processed.',
    access: writes('data delete'),
    command: path === 'trash' ? 'data delete' : 'data delete --undo',
    body: IDS,
    example: { ids: ['66f0c0ffee0ddba11c0de001'] },
    answers: ok(EACH, answer),
    handle: ({ app, target, body: { ids } }) => writeEach(ids, (document) => write(app, target, document)),
  });

/** Single documents, for operators. Those with a fixed last word come first: no id is one. */
const SINGLE_DOCUMENT_ROUTES = [
  mountedAt(`POST ${DOCUMENTS}`, INSERT_DOCUMENT, writes('data insert'), {
    answers: [
      { ...created(DOCUMENT, 'Document stored'), headers: ETAG },
      { ...ok(DOCUMENT, 'Document updated'), headers: ETAG },
    ],
  }),
  forEach(
    'trash',
    { id: 'trashDocuments', summary: `Move up to ${MAX_DOCUMENTS_AT_ONCE} documents to the trash`, answer: 'Trashed' },
    trashDocument,
  ),
  forEach(
    'recover',
    {
      id: 'recoverDocuments',
      summary: `Restore up to ${MAX_DOCUMENTS_AT_ONCE} documents from the trash`,
      answer: 'Recovered',
    },
    recoverDocument,
  ),
  mountedAt(`GET ${DOCUMENTS}/:document`, GET_DOCUMENT, READS, {
    answers: { ...encoded(envelope(SHOWN_DOCUMENT), 'The document'), headers: ETAG },
    present: (reply) => wrapReply('{"success":true,"data":', reply as EncodedReply, ',"message":"Document"}'),
  }),
  route(`GET ${DOCUMENTS}/:document/history`, {
    id: 'showHistory',
    summary: 'List the changes of a document, newest first',
    description:
      'From the change log, so older changes and parts of large documents are missing. On MongoDB it has little more than times. One request examines 50,000 changes of the collection; send `next` as `before` to continue.',
    access: READS,
    query: {
      before: parameter('`next` of the previous response', integer({ minimum: 1, maximum: 999_999_999_999 })),
      limit: wholeNumberParameter('Number of changes', 25, { max: 100 }),
    },
    answers: ok(HISTORY, 'History of the document'),
    errors: { 400: ['INVALID_QUERY'] },
    async handle({ app, collection, params, query: { before, limit } }) {
      return findHistory(app, collection, params.document, { before: before ?? null, limit });
    },
  }),
  route(`GET ${DOCUMENTS}/:document/files`, {
    id: 'listDocumentFiles',
    summary: `List up to ${MAX_ATTACHED} files of a document, with links valid for ten minutes`,
    access: READS,
    answers: ok(object({ items: arrayOf(ATTACHED_FILE) }), 'Files of the document'),
    errors: { 503: ['STORAGE_UNAVAILABLE', 'STORAGE_REFUSED'] },
    async handle({ app, ctx, project, collection, params }) {
      return { items: await listAttached(app, project, collection, params.document, ownAddress(app, ctx)) };
    },
  }),
  mountedAt(`PATCH ${DOCUMENTS}/:document`, UPDATE_DOCUMENT, writes('data update'), {
    answers: { ...ok(DOCUMENT, 'Document changed'), headers: ETAG },
    present: (returned) => (returned as { data: unknown }).data,
  }),
  mountedAt(`DELETE ${DOCUMENTS}/:document`, DELETE_DOCUMENT, writes('data delete')),
  mountedAt(`PATCH ${DOCUMENTS}/:document/recover`, RECOVER_DOCUMENT, writes('data delete'), {
    command: 'data delete --undo',
  }),
];

const MAX_QUERY = 8192;

const EXPLAINED = object(
  {
    indexes: { ...arrayOf(TEXT), description: 'None: a scan of all documents.' },
    examined: { ...WHOLE, description: 'Documents examined.' },
    returned: { ...WHOLE, description: 'Documents found, or passed to later stages of a pipeline.' },
    plan: { ...ANYTHING, description: 'The plan of the database.' },
  },
  'ExplainedRead',
);

/** How a list or a pipeline is read, for the operators' query screen. */
const explainReadRoute = route('POST /api/projects/:projectId/collections/:collection/documents/explain', {
  id: 'explainRead',
  summary: 'Explain a list or a pipeline',
  description: 'Runs it and returns the index that was used. Send the query string of a list, or a pipeline.',
  bodySize: 'many',
  access: READS,
  body: object({ 'query?': text({ maxLength: MAX_QUERY }), 'pipeline?': ANYTHING }),
  example: { query: 'status=live&sort=-views' },
  answers: ok(EXPLAINED, 'Read explained'),
  errors: { ...LISTING.errors, 400: [...new Set([...LISTING.errors[400], ...AGGREGATING.errors[400]])] },
  async handle({ app, ctx, caller, collection: { name }, body: { query, pipeline } }) {
    if ((query === undefined) === (pipeline === undefined)) {
      throw invalid('INVALID_BODY', 'Give either a query or a pipeline');
    }
    const signal = clientSignal(ctx);
    return pipeline === undefined
      ? explainList(app, caller, name, query!, signal)
      : explainPipeline(app, caller, name, pipeline, { includeDeleted: false, signal });
  },
});

const MAX_IMPORTED = 1000;

const OUTCOME = object(
  {
    inserted: WHOLE,
    'present?': WHOLE,
    rejected: arrayOf(object({ index: WHOLE, message: TEXT })),
    'notes?': arrayOf(object({ field: TEXT, message: TEXT, count: WHOLE, index: WHOLE })),
  },
  'ImportOutcome',
);

/**
 * Documents of a project, for operators: they see and may store what the project's secret key may. `users` have routes
 * of their own.
 */
export const PROJECT_DOCUMENT_ROUTES: RouteList = {
  prefix: '/api/projects/:projectId/collections/:collection/documents',
  tag: 'Project documents',
  rate: 'operator',
  about: 'Documents of a project, as its operators see them.',
  params: {
    collection: naming('Name of the collection', 'COLLECTION_NOT_FOUND'),
    document: {
      description: 'Id of the document',
      schema: text({ pattern: '^[0-9a-fA-F]{24}$' }),
      errors: { 400: ['INVALID_ID'], 404: ['DOCUMENT_NOT_FOUND'] },
    },
  },
  routes: [
    mountedAt('GET /api/projects/:projectId/collections/:collection/documents', LIST_DOCUMENTS, BROWSES, {
      command: 'data query',
      description: `${LISTING.description} With \`as\` it is the list that this user is shown, and the audit log notes \`play as\`.`,
      ownQuery: { as: VIEW_AS, ...LISTING.ownQuery },
    }),
    mountedAt('POST /api/projects/:projectId/collections/:collection/documents/aggregate', AGGREGATE_DOCUMENTS, READS),
    route('GET /api/projects/:projectId/collections/:collection/documents/export', {
      id: 'exportDocuments',
      command: 'data export',
      summary: 'Export documents as NDJSON',
      description: `In the order of their ids. An answer that breaks off before its end was not whole. ${FILTERING.description}`,
      access: READS,
      ownQuery: FILTERING.ownQuery,
      answers: own(200, 'The documents', { 'application/x-ndjson': TEXT }),
      errors: FILTERING.errors,
      async handle({ app, ctx, project, collection }) {
        const { documents, release } = await readExport(app, project, collection, {
          ...parseExportQuery(ctx.querystring, collection),
          signal: clientSignal(ctx),
        });
        ctx.res.once('close', release);
        ctx.type = 'application/x-ndjson';
        ctx.attachment(`${collection.name}.ndjson`);
        ctx.body = Readable.from(inChunks(writeLines(documents)));
      },
    }),
    route('POST /api/projects/:projectId/collections/:collection/documents/import', {
      id: 'importDocuments',
      bodySize: 'many',
      summary: 'Import documents',
      description:
        'Invalid and existing documents are reported, the others are stored. Ids, times and trash state of an export are kept.',
      // The documents themselves are not for the audit log.
      access: inCollection(projectOwner('data import', { looks: 'dryRun', withoutBody: true })),
      query: { dryRun: flagParameter('Store nothing: only validate') },
      body: object({ documents: arrayOf(ANYTHING, { minItems: 1, maxItems: MAX_IMPORTED }) }),
      example: { documents: [{ title: 'Hello', views: 0 }] },
      answers: ok(OUTCOME, 'Documents stored'),
      errors: { 400: ['INVALID_QUERY'], 403: ['QUOTA_EXCEEDED'] },
      async handle({ app, collection, query: { dryRun }, body: { documents } }) {
        const data = await importDocuments(app, collection, documents, { dryRun });
        return say(data, `${data.inserted} documents ${dryRun ? 'fit' : 'stored'}`);
      },
    }),
    explainReadRoute,
    ...SINGLE_DOCUMENT_ROUTES,
  ],
};

async function* writeLines(documents: AsyncIterable<object>): AsyncGenerator<string> {
  for await (const document of documents) yield `${JSON.stringify(document)}\n`;
}
