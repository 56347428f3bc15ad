import type { Context } from 'koa';
import type { App } from '../../app.js';
import { createRouter, type RouteGroup } from '../../http/routes/mount-routes.js';
import { LOCAL_FILES_PATH } from '../../platform/object-store/local-store.js';
import { receiveSignedUpload } from './uploads/receive-signed-upload.js';
import { serveFile } from './serve-file.js';

/** Files in the data directory: public addresses (GET) and signed ones for uploads (PUT). Needs no key. */
export function localFileRoutes(app: App): RouteGroup {
  const router = createRouter(LOCAL_FILES_PATH);
  router.get('/*path', (ctx) => serveFile(app, ctx, pathOf(ctx)));
  router.put('/*path', async (ctx) => {
    await receiveSignedUpload(app, {
      path: pathOf(ctx),
      // Not ctx.URL, which is empty when the Host header is no host.
      query: new URLSearchParams(ctx.querystring),
      contentType: ctx.get('content-type'),
      contentLength: ctx.request.length ?? null,
      body: ctx.req,
    });
    ctx.body = { success: true, message: 'File stored' };
  });
  return { prefix: LOCAL_FILES_PATH, router };
}

/** As it was sent: a path of ours has nothing to decode, so what is encoded is not one of ours. */
function pathOf(ctx: Context): string {
  return ctx.path.slice(LOCAL_FILES_PATH.length + 1);
}
