import type { App } from '../../../app.js';
import { CLOCKS_DIFFER_MS } from '../../../platform/time/clock.js';
import { randomToken } from '../../../platform/ids.js';
import { forgetCutoffs } from '../../access/token-cutoff.js';
import { HIDDEN_FIELD } from '../../collections/fields/field.js';
import type { ServiceNotes } from '../../documents/store/document-store.js';
import type { Project } from '../../projects/project.js';
import { revokeSessions, findLiveSessions, endOneSession, type RevokeReason, type Session } from './session.js';
import type { User } from '../user.js';
import { ObjectId } from 'bson';
import { clientNetwork } from '../../../http/requests/client-address.js';
import { loginLock, type LoginLock } from './login-lock.js';
import { findUserByEmail, noteInAccount, userGone } from '../user-store.js';
import { missing } from '../../../errors.js';

const STAMP_BYTES = 12;

/** An account whose sessions can be ended. */
export type KnownAccount = Pick<User, '_id' | typeof HIDDEN_FIELD>;

/**
 * The fields that a write sets on the account to end all sessions of its user, or all but `keep`: with that very write
 * they are over, and their access tokens, in other processes within a second. endSessions notes it in the sessions.
 * `user` is the account before.
 */
export function sessionsEnd(
  app: App,
  { [HIDDEN_FIELD]: { tokensSince } }: KnownAccount,
  keep: string | null = null,
): ServiceNotes {
  // Ahead, as a token may have been signed by a clock that is; and later than the last time, after which tokens are
  // dated: the clock may have been set back since.
  const since = Math.max(app.clock.now() + CLOCKS_DIFFER_MS, (tokensSince?.getTime() ?? 0) + 1);
  return {
    [`${HIDDEN_FIELD}.stamp`]: randomToken(STAMP_BYTES),
    [`${HIDDEN_FIELD}.keptSession`]: keep,
    // Asked for in one of those sessions, perhaps by the one who is being kept out.
    [`${HIDDEN_FIELD}.pendingEmail`]: null,
    [`${HIDDEN_FIELD}.tokensSince`]: new Date(since),
  };
}

/**
 * Closes the sessions that a write of sessionsEnd has ended, and has their tokens refused here at once; `user` is the
 * account after it. Answers how many sessions there were.
 */
export async function endSessions(app: App, project: Project, user: User, reason: RevokeReason): Promise<number> {
  forgetCutoffs(app, project._id);
  return revokeSessions(app, project._id, user._id, reason, user[HIDDEN_FIELD].keptSession);
}

/** True if a session has outlived every write that ended sessions of its user. */
export function isSessionOf(session: Session, user: User): boolean {
  const { stamp, keptSession } = user[HIDDEN_FIELD];
  return session.stamp === stamp || session._id === keptSession;
}

const MAX_SESSIONS = 100;
/** An id that no session has. */
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

/** A user's live sessions, the one used last first. */
export function listSessions(app: App, project: Project, user: Pick<User, '_id'>): Promise<Session[]> {
  return findLiveSessions(app, project._id, user).toArray();
}

const MAX_OWN = 100;

/** The live sessions that a user is shown, the one used last first. */
export async function listMySessions(app: App, project: Project, user: User): Promise<Session[]> {
  const sessions = await findLiveSessions(app, project._id, user).limit(MAX_OWN).toArray();
  return sessions.filter((session) => isSessionOf(session, user));
}

/** A session as operators see it, without anything that could be used in its place. */
export function presentSession(session: Session) {
  return {
    id: session._id,
    createdAt: session.createdAt.toISOString(),
    usedAt: session.usedAt.toISOString(),
    expiresAt: session.expiresAt.toISOString(),
    ip: session.ip,
    userAgent: session.userAgent,
  };
}

/**
 * Ends one session of a user, `all` of them or those `others` than `current`, and their access tokens; answers how many
 * there were. 404 for a session that is not the user's or has ended, and for `others` where none is the current one.
 */
export async function endSession(
  app: App,
  project: Project,
  user: KnownAccount,
  which: string,
  current: string | null = null,
): Promise<number> {
  if (which === 'all' || (which === 'others' && current !== null)) {
    const ended = await noteInAccount(
      app,
      project._id,
      { _id: user._id },
      sessionsEnd(app, user, which === 'others' ? current : null),
    );
    if (!ended) throw userGone();
    return endSessions(app, project, ended, 'revoked');
  }
  const sessions = await listSessions(app, project, user);
  const session = sessions.find(({ _id }) => _id === which);
  if (!session || !(await endOneSession(app, session, 'revoked'))) {
    throw missing('SESSION_NOT_FOUND', 'The user has no such session');
  }
  return 1;
}
