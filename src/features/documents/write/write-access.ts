import type { Access } from '../../../http/routes/route.js';
import { WRITES_DOCUMENTS_DESCRIPTION } from '../../access/describe-access.js';
import { callerOf, settleKey } from '../../access/require-key.js';
import { requireWriteTarget, type WriteTarget } from './write-target.js';

interface ToTarget {
  target: WriteTarget;
}

/** The rule of writers for the collection that the path names (rest-api.md 5); 404 when there is none. */
export const WRITES_DOCUMENTS: Access<ToTarget> = {
  ...WRITES_DOCUMENTS_DESCRIPTION,
  admit: settleKey,
  give: async (app, ctx) => ({ target: await requireWriteTarget(app, callerOf(ctx), ctx.params.collectionName!) }),
};

/** The same for a write that answers the document: it asks for room before the write, never after it. */
export const WRITES_AND_SHOWS: Access<ToTarget> = {
  ...WRITES_DOCUMENTS,
  async give(app, ctx) {
    const { project } = callerOf(ctx);
    const target = await requireWriteTarget(app, callerOf(ctx), ctx.params.collectionName!);
    if (app.replies.held() > 0) await app.replies.room(project._id.toHexString());
    return { target };
  },
};
