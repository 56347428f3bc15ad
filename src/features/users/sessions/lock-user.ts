import type { ObjectId } from 'bson';
import type { App } from '../../../app.js';
import { clientNetwork } from '../../../http/requests/client-address.js';
import { isSessionOf } from './end-sessions.js';
import { loginLock, type LoginLock } from './login-lock.js';
import { findLiveSessions } from './session.js';
import { findUserByEmail } from '../user-store.js';

const MAX_SESSIONS = 100;

/**
 * The lock of an end user's account. A network from which the account has a live session is known: only its own five
 * failures lock it out.
 */
export function lockUser(app: App, projectId: ObjectId, email: string, ip: string): LoginLock {
  return loginLock(app, projectId, email, ip, async (network) => {
    const user = await findUserByEmail(app, projectId, email);
    if (!user) return false;
    const sessions = await findLiveSessions(app, projectId, user).limit(MAX_SESSIONS).toArray();
    return sessions.some((session) => isSessionOf(session, user) && clientNetwork(session.ip) === network);
  });
}
