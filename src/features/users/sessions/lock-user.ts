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
  return loginLock(app, projectId, email, ip, (network) => isSignedInFrom(app, projectId, email, network));
}

/** True if the account of an address has a live session from a network. The work is the same without an account. */
export async function isSignedInFrom(app: App, projectId: ObjectId, email: string, network: string): Promise<boolean> {
  const user = await findUserByEmail(app, projectId, email);
  const sessions = await findLiveSessions(app, projectId, user ?? NOBODY)
    .limit(MAX_SESSIONS)
    .toArray();
  return (
    user !== null && sessions.some((session) => isSessionOf(session, user) && clientNetwork(session.ip) === network)
  );
}
