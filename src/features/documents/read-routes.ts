import type Router from '@koa/router';
import type { Context } from 'koa';
import type { App } from '../../app.js';
import { clientSignal } from '../../http/requests/client-signal.js';
import { readJson, requireObjectBody } from '../../http/requests/read-body.js';
import { replyEncodedJson, replyParts } from '../../http/replies/reply.js';
import { readFlag } from '../../http/routes/read-flag.js';
import { callerOf } from '../access/require-key.js';
import { aggregateDocuments } from './read/aggregate-documents.js';
import { getDocument } from './read/get-document.js';
import { encodeList } from './read/list-documents.js';
import { listEnvelope, wrapReply, type EncodedReply } from './read/stored-documents.js';

/** The routes that read documents (rest-api.md 4.2). All of them need a key, which the group's guards have checked. */
export function addReadRoutes(router: Router, app: App): void {
  router.get('/:collectionName', async (ctx) => {
    reply(
      ctx,
      listEnvelope(
        await encodeList(app, callerOf(ctx), ctx.params.collectionName!, ctx.querystring, clientSignal(ctx)),
      ),
    );
  });

  router.get('/:collectionName/:id', async (ctx) => {
    const { collectionName, id } = ctx.params;
    reply(ctx, await getDocument(app, callerOf(ctx), collectionName!, id!, ctx.querystring));
  });

  router.post('/:collectionName/aggregate', readJson(), async (ctx) => {
    const { pipeline } = requireObjectBody(ctx);
    const includeDeleted = readFlag(ctx.query, 'include_deleted', false);
    const data = await aggregateDocuments(app, callerOf(ctx), ctx.params.collectionName!, pipeline, {
      includeDeleted,
      signal: clientSignal(ctx),
    });
    reply(ctx, wrapReply('{"success":true,"data":', data, ',"message":"Aggregation completed"}'));
  });
}

function reply(ctx: Context, encoded: EncodedReply): void {
  if (typeof encoded === 'string') replyEncodedJson(ctx, encoded);
  else replyParts(ctx, encoded);
}
