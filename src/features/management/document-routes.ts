import { Readable } from 'node:stream';
import { clientSignal } from '../../http/requests/client-signal.js';
import { flagParameter, mountedAt, naming, ok, own, route, say, type RouteList } from '../../http/routes/route.js';
import { inChunks } from '../../platform/database/in-chunks.js';
import { ANYTHING, arrayOf, object, text, TEXT, WHOLE } from '../../platform/schema/schema.js';
import { projectOwner } from '../access/operator-access.js';
import { importDocuments } from '../documents/bulk/import-documents.js';
import { parseExportQuery } from '../documents/query/parse-list-query.js';
import { AGGREGATE_DOCUMENTS, FILTERING, LIST_DOCUMENTS, LISTING, AGGREGATING } from '../documents/read-routes.js';
import { readExport } from '../documents/read/export-documents.js';
import { inCollection, BROWSES, VIEW_AS, READS } from './view-as.js';
import { SINGLE_DOCUMENT_ROUTES } from './single-document-routes.js';
import { invalid } from '../../errors.js';
import { explainPipeline } from '../documents/read/aggregate-documents.js';
import { explainList } from '../documents/read/list-documents.js';

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
