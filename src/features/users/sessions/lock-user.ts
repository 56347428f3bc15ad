import { ObjectId } from 'bson';
import type { App } from '../../../app.js';
import { clientNetwork } from '../../../http/requests/client-address.js';
import { isSessionOf } from './end-sessions.js';
import { loginLock, type LoginLock } from './login-lock.js';
import { findLiveSessions } from './session.js';
import { findUserByEmail } from '../user-store.js';

const MAX_SESSIONS = 100;
/** Nobody's id. */
const NOBODY = { _id: new ObjectId('0'.repeat(24)) };

/**
 * The lock of an end user's account. A network from which the account has a live session is known: only its own five
 * failures lock it out.
 */
export function lockUser(app: App, projectId: ObjectId, email: string, ip: string): LoginLock {
  return loginLock(app, projectId, email, ip, async (network) => {
    const user = await findUserByEmail(app, projectId, email);
    // Also where there is no account: the time must not tell it.
    const sessions = await findLiveSessions(app, projectId, user ?? NOBODY)
      .limit(MAX_SESSIONS)
      .toArray();
    return (
      user !== null && sessions.some((session) => isSessionOf(session, user) && clientNetwork(session.ip) === network)
    );
  });
}
