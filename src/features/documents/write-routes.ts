import type Router from '@koa/router';
import type { Context } from 'koa';
import type { App } from '../../app.js';
import { readJson, requireObjectBody } from '../../http/requests/read-body.js';
import { replyJson } from '../../http/replies/reply.js';
import { readFlag } from '../../http/routes/read-flag.js';
import { callerOf } from '../access/require-key.js';
import { readIdempotencyKey } from './write/idempotency.js';
import { insertDocument } from './write/insert-document.js';
import { insertDocuments } from './bulk/insert-documents.js';
import { recoverDocument } from './write/recover-document.js';
import { deleteDocument, trashDocument } from './write/trash-document.js';
import { updateDocument } from './write/update-document.js';
import { requireWriteTarget, type WriteTarget } from './write/write-target.js';

type RouteContext = Context & { params: Record<string, string> };

/**
 * The routes that change documents (rest-api.md 4.2; decisions.md 3). All of them need a key, which the group's guards
 * have checked.
 */
export function addWriteRoutes(router: Router, app: App): void {
  const place = (ctx: RouteContext): Promise<WriteTarget> =>
    requireWriteTarget(app, callerOf(ctx), ctx.params.collectionName!);
  /** Of a write that answers the document: once it is written there is no waiting for room. */
  const placeWithRoom = async (ctx: RouteContext): Promise<WriteTarget> => {
    const found = await place(ctx);
    if (app.replies.held() > 0) await app.replies.room(callerOf(ctx).project._id.toHexString());
    return found;
  };

  router.post('/:collectionName', readJson(), async (ctx) => {
    const key = readIdempotencyKey(ctx.get('idempotency-key'));
    const document = await insertDocument(app, await placeWithRoom(ctx), requireObjectBody(ctx), key);
    replyJson(ctx, document, 201);
  });

  router.post('/:collectionName/bulk', readJson(), async (ctx) => {
    const key = readIdempotencyKey(ctx.get('idempotency-key'));
    const data = await insertDocuments(app, await place(ctx), (ctx.request as { body?: unknown }).body, key);
    ctx.status = 201;
    ctx.body = { success: true, data, message: `Inserted ${data.insertedCount}` };
  });

  router.patch('/:collectionName/:id/recover', async (ctx) => {
    const data = await recoverDocument(app, await placeWithRoom(ctx), ctx.params.id!);
    ctx.body = { success: true, data, message: 'Document recovered from trash' };
  });

  for (const method of ['put', 'patch'] as const) {
    router[method]('/:collectionName/:id', readJson(), async (ctx) => {
      const data = await updateDocument(app, await placeWithRoom(ctx), ctx.params.id!, requireObjectBody(ctx));
      replyJson(ctx, { message: 'Updated', data });
    });
  }

  router.delete('/:collectionName/:id', async (ctx) => {
    const permanent = readFlag(ctx.query, 'permanent', false);
    const remove = permanent ? deleteDocument : trashDocument;
    const id = await remove(app, await place(ctx), ctx.params.id!);
    const message = permanent ? 'Document permanently deleted' : 'Document moved to trash';
    ctx.body = { success: true, data: { id }, message };
  });
}
