import { Readable } from 'node:stream';
import type { Context } from 'koa';
import type { App } from '../../app.js';
import { forbidden } from '../../errors.js';
import { readFlag } from '../../http/read-flag.js';
import { createRouter, type RouteGroup } from '../../http/routes.js';
import { inChunks } from '../../platform/in-chunks.js';
import { compileReader } from '../../platform/json-schema.js';
import { operatorCaller } from '../access/operator-caller.js';
import { operatedProject, requireOperator, requireOwner } from '../access/require-operator.js';
import { requireCollection } from '../collections/collection-store.js';
import type { Collection } from '../collections/collection.js';
import { exportDocuments } from '../documents/export-documents.js';
import { importDocuments } from '../documents/import-documents.js';
import { listDocuments } from '../documents/list-documents.js';
import type { Project } from '../projects/project.js';

const PREFIX = '/api/projects/:projectId/collections/:collection/documents';
const MAX_IMPORTED = 1000;

export const readImportBody = compileReader<{ documents: unknown[] }>({
  type: 'object',
  required: ['documents'],
  additionalProperties: false,
  properties: { documents: { type: 'array', minItems: 1, maxItems: MAX_IMPORTED } },
});

/** Documents of a project, for operators: they see and may store what the project's secret key may. `users` have routes of their own. */
export function projectDocumentRoutes(app: App): RouteGroup {
  const router = createRouter(PREFIX);

  router.get('/', requireOperator(app), async (ctx) => {
    const { project, collection } = await requireNamed(app, ctx);
    const data = await listDocuments(app, operatorCaller(project), collection.name, ctx.querystring);
    ctx.body = { success: true, data, message: 'count' in data ? 'Documents counted' : 'Documents fetched' };
  });

  router.get('/export', requireOperator(app), async (ctx) => {
    const { collection } = await requireNamed(app, ctx);
    const includeDeleted = readFlag(ctx.query, 'include_deleted', false);
    ctx.type = 'application/x-ndjson';
    ctx.attachment(`${collection.name}.ndjson`);
    ctx.body = Readable.from(inChunks(writeLines(exportDocuments(app, collection, { includeDeleted }))));
  });

  // The documents themselves are none of the audit log's business.
  const recorded = { looks: 'dryRun', withoutBody: true };
  router.post('/import', requireOwner(app, 'data import', recorded), async (ctx) => {
    const { collection } = await requireNamed(app, ctx);
    const { documents } = readImportBody(ctx.request.body);
    const dryRun = readFlag(ctx.query, 'dryRun', false);
    const data = await importDocuments(app, collection, documents, { dryRun });
    ctx.body = { success: true, data, message: `${data.inserted} documents ${dryRun ? 'fit' : 'stored'}` };
  });

  return { prefix: PREFIX, router };
}

/** 404 for an unknown collection, 403 USERS_BLOCKED for end users. */
async function requireNamed(app: App, ctx: Context): Promise<{ project: Project; collection: Collection }> {
  const project = await operatedProject(app, ctx);
  const { collection: name = '' } = (ctx as Context & { params: Record<string, string> }).params;
  if (name.toLowerCase().startsWith('users'))
    throw forbidden('USERS_BLOCKED', 'End users are not listed as documents: see /api/projects/:projectId/users');
  return { project, collection: await requireCollection(app, project._id, name) };
}

async function* writeLines(documents: AsyncIterable<object>): AsyncGenerator<string> {
  for await (const document of documents) yield `${JSON.stringify(document)}\n`;
}
