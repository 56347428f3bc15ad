import type Router from '@koa/router';
import type { App } from '../../app.js';
import { readFlag } from '../../http/read-flag.js';
import { callerOf } from '../access/require-key.js';
import { getDocument } from './get-document.js';

/** The routes that read documents (rest-api.md 4.2). All of them need a key, which the group's guards have checked. */
export function addReadRoutes(router: Router, app: App): void {
  router.get('/:collectionName/:id', async (ctx) => {
    ctx.body = await getDocument(app, callerOf(ctx), ctx.params.collectionName!, ctx.params.id!, {
      includeDeleted: readFlag(ctx.query, 'include_deleted', false),
      meta: readFlag(ctx.query, 'meta', true),
    });
  });
}
