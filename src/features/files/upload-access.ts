import type { Access } from '../../http/routes/route.js';
import { DELETES_UPLOADS_DESCRIPTION, UPLOADS_DESCRIPTION } from '../access/describe-access.js';
import { giveCaller, type ByKey } from '../access/key-access.js';
import { callerOf, settleKey } from '../access/require-key.js';
import { requirePublicUploads } from './attached/attach-file.js';

const admit: Access['admit'] = (app, ctx) => {
  const check = (): void => {
    const caller = callerOf(ctx);
    // Whether a signed-in user may is decided by the document to which the file is to belong.
    if (caller.bearer.state !== 'user') requirePublicUploads(caller);
  };
  const settling = settleKey(app, ctx);
  if (settling) return settling.then(check);
  check();
  return null;
};

/**
 * The secret key; a publishable key too if the project lets those upload (decisions.md 6), or with a signed-in user, of
 * whom the use case asks whether the document of the file is theirs to change.
 */
export const UPLOADS: Access<ByKey> = { ...UPLOADS_DESCRIPTION, admit, give: giveCaller };

/** As UPLOADS; the use case compares the user. */
export const DELETES_UPLOADS: Access<ByKey> = { ...DELETES_UPLOADS_DESCRIPTION, admit, give: giveCaller };
