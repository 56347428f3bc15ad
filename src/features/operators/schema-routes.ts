import type { App } from '../../app.js';
import { readFlag } from '../../http/read-flag.js';
import { createRouter, type RouteGroup } from '../../http/routes.js';
import { compileReader } from '../../platform/json-schema.js';
import { operatedProject, requireOperator, requireOwner } from '../access/require-operator.js';
import { applySchema } from '../collections/apply-schema.js';
import {
  declareCollection,
  DECLARATION_SCHEMA,
  FIELD_DEFS,
  SCHEMA_FORMAT,
  type SchemaFile,
} from '../collections/collection-declaration.js';
import { listCollections } from '../collections/list-collections.js';
import { planSchema, presentSchemaChange } from '../collections/plan-schema.js';

const PREFIX = '/api/projects/:projectId/schema';

export const readSchemaBody = compileReader<SchemaFile>({
  type: 'object',
  required: ['format', 'collections'],
  additionalProperties: false,
  properties: {
    format: { const: SCHEMA_FORMAT },
    collections: { type: 'array', maxItems: 1000, items: DECLARATION_SCHEMA },
  },
  $defs: FIELD_DEFS,
});

/** All collections of a project as one declaration, for operators: what `bsvc schema export` writes and `bsvc schema apply` takes. */
export function projectSchemaRoutes(app: App): RouteGroup {
  const router = createRouter(PREFIX);

  router.get('/', requireOperator(app), async (ctx) => {
    const { _id } = await operatedProject(app, ctx);
    const collections = (await listCollections(app, _id)).map(declareCollection);
    ctx.body = { success: true, data: { format: SCHEMA_FORMAT, collections }, message: 'Schema' };
  });

  router.put('/', requireOwner(app, 'schema apply', { looks: 'dryRun' }), async (ctx) => {
    const project = await operatedProject(app, ctx);
    const { collections } = readSchemaBody(ctx.request.body);
    const dryRun = readFlag(ctx.query, 'dryRun', false);
    const prune = readFlag(ctx.query, 'prune', false);
    const changes = planSchema(await listCollections(app, project._id), collections, { prune });
    if (!dryRun) await applySchema(app, project, changes);
    ctx.body = {
      success: true,
      data: { changes: changes.map(presentSchemaChange), applied: !dryRun },
      message: changes.length === 0 ? 'Nothing to change' : dryRun ? 'Nothing was changed' : 'Schema applied',
    };
  });

  return { prefix: PREFIX, router };
}
