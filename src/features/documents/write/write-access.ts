import { actingAs } from '../../../platform/actor.js';
import type { App } from '../../../app.js';
import type { Access, RouteContext } from '../../../http/routes/route.js';
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
  give: giveTarget,
};

/** The same for a write that answers the document: it asks for room before the write, never after it. */
export const WRITES_AND_SHOWS: Access<ToTarget> = {
  ...WRITES_DOCUMENTS,
  give(app, ctx) {
    const given = giveTarget(app, ctx);
    const room = (to: ToTarget): ToTarget | Promise<ToTarget> =>
      app.replies.room(tenantOfCaller(callerOf(ctx)))?.then(() => to) ?? to;
    return given instanceof Promise ? given.then(room) : room(given);
  },
};

function giveTarget(app: App, ctx: RouteContext): ToTarget | Promise<ToTarget> {
  const caller = callerOf(ctx);
  const target = requireWriteTarget(app, caller, ctx.params.collectionName!);
  const acting = actingAs(app, actorOf(caller));
  if (target instanceof Promise) return target.then((opened) => ({ app: acting, target: opened }));
  return { app: acting, target };
}
