import type { App } from '../../app.js';
import { readJson, requireObjectBody } from '../../http/requests/read-body.js';
import { createRouter, type RouteGroup } from '../../http/routes/mount-routes.js';
import { callerOf, requireKey, requireSecretKey } from '../access/require-key.js';
import { addCollection } from '../collections/add-collection.js';
import { readDeclaration } from '../collections/schema/collection-declaration.js';
import { requireCollection } from '../collections/collection-store.js';
import { presentCollection } from '../collections/present-collection.js';

const PREFIX = '/api/schemas';

/** Schemas of collections, for tools: reading one with any key, registering a collection with the secret key. */
export function schemaRoutes(app: App): RouteGroup {
  const router = createRouter(PREFIX);

  router.get('/:collectionName', async (ctx) => {
    const collection = await requireCollection(app, callerOf(ctx).project._id, ctx.params.collectionName!);
    ctx.body = { success: true, data: presentCollection(collection), message: 'Schema found' };
  });

  router.post('/', requireSecretKey(), readJson(), async (ctx) => {
    const declaration = readDeclaration(requireObjectBody(ctx));
    const { collection } = await addCollection(app, callerOf(ctx).project, declaration);
    ctx.status = 201;
    ctx.body = { success: true, data: presentCollection(collection), message: 'Collection created' };
  });

  return { prefix: PREFIX, router, guards: [requireKey(app)] };
}
