import type Router from '@koa/router';
import type { App } from '../../app.js';
import { readJson, requireObjectBody } from '../../http/read-body.js';
import { readFlag } from '../../http/read-flag.js';
import { callerOf } from '../access/require-key.js';
import { aggregateDocuments } from './aggregate-documents.js';
import { getDocument } from './get-document.js';
import { listDocuments } from './list-documents.js';

/** The routes that read documents (rest-api.md 4.2). All of them need a key, which the group's guards have checked. */
export function addReadRoutes(router: Router, app: App): void {
  router.get('/:collectionName', async (ctx) => {
    const data = await listDocuments(app, callerOf(ctx), ctx.params.collectionName!, ctx.querystring);
    ctx.body = { success: true, data, message: 'items' in data ? 'Documents fetched' : 'Documents counted' };
  });

  router.get('/:collectionName/:id', async (ctx) => {
    ctx.body = await getDocument(app, callerOf(ctx), ctx.params.collectionName!, ctx.params.id!, ctx.querystring);
  });

  router.post('/:collectionName/aggregate', readJson(), async (ctx) => {
    const { pipeline } = requireObjectBody(ctx);
    const includeDeleted = readFlag(ctx.query, 'include_deleted', false);
    const data = await aggregateDocuments(app, callerOf(ctx), ctx.params.collectionName!, pipeline, includeDeleted);
    ctx.body = { success: true, data, message: 'Aggregation completed' };
  });
}
