import type { Access } from '../../../http/routes/route.js';
import { DELETES_UPLOADS_DESCRIPTION, UPLOADS_DESCRIPTION } from '../../access/describe-access.js';
import { giveCaller, type ByKey } from '../../access/key-access.js';
import { callerOf, refusePublishable, settleKey } from '../../access/require-key.js';

const admit: Access['admit'] = (app, ctx) => {
  const check = (): void => {
    const { name, storage } = callerOf(ctx).project;
    if (!storage?.publishableUploads) refusePublishable(ctx, `, unless ${command(name)} lets publishable keys upload`);
  };
  const settling = settleKey(app, ctx);
  if (settling) return settling.then(check);
  check();
  return null;
};

/** The secret key; a publishable key too if the project lets those upload (decisions.md 6). */
export const UPLOADS: Access<ByKey> = { ...UPLOADS_DESCRIPTION, admit, give: giveCaller };

/** As UPLOADS; the use case compares the user. */
export const DELETES_UPLOADS: Access<ByKey> = { ...DELETES_UPLOADS_DESCRIPTION, admit, give: giveCaller };

function command(project: string): string {
  return `"bsvc project update ${project} --publishable-uploads on"`;
}
