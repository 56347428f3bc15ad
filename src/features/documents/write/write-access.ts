import { actingAs } from '../../../platform/actor.js';
import type { App } from '../../../app.js';
import type { Access } from '../../../http/routes/route.js';
import { actorOf, tenantOfCaller } from '../../access/caller.js';
import { WRITES_DOCUMENTS_DESCRIPTION } from '../../access/describe-access.js';
import { callerOf, authenticateKey } from '../../access/require-key.js';
import { requireWriteTarget, type WriteTarget } from './write-target.js';

interface ToTarget {
  /** On behalf of the end user, else of the key. */
  app: App;
  target: WriteTarget;
}

/** The rule of writers for the collection that the path names (rest-api.md 5); 404 when there is none. */
export const WRITES_DOCUMENTS: Access<ToTarget> = {
  ...WRITES_DOCUMENTS_DESCRIPTION,
  admit: authenticateKey,
  give: async (app, ctx) => ({
    app: actingAs(app, actorOf(callerOf(ctx))),
    target: await requireWriteTarget(app, callerOf(ctx), ctx.params.collectionName!),
  }),
};

/** The same for a write that answers the document: it asks for room before the write, never after it. */
export const WRITES_AND_SHOWS: Access<ToTarget> = {
  ...WRITES_DOCUMENTS,
  async give(app, ctx) {
    const given = await WRITES_DOCUMENTS.give!(app, ctx);
    await app.replies.room(tenantOfCaller(callerOf(ctx)));
    return given;
  },
};
