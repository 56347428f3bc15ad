import type { ObjectId } from 'bson';
import type { App } from '../../../app.js';
import { randomToken } from '../../../platform/ids.js';
import { HIDDEN_FIELD } from '../../collections/fields/field.js';
import type { Project } from '../../projects/project.js';
import { changeUser } from '../accounts/change-user.js';
import { sessionsEnd, type KnownAccount } from '../sessions/end-sessions.js';
import { factorsEnd } from '../factors/factors.js';
import { finishTransfer, finishTransferJob } from './finish-transfer.job.js';
import { sessionStore, type Session } from '../sessions/session.js';
import type { User } from '../user.js';

const STAMP_BYTES = 12;
const PASSWORD_HASH = `${HIDDEN_FIELD}.passwordHash`;
const FINISH_AFTER_MS = 30_000;

/** The session in which an address is verified, if any. It stays valid, and so does the identity that opened it. */
export type VerifyingSession = Pick<Session, '_id' | 'identity'> | null;

/** The active session of a user that a request names, for verifying an address in it. */
export async function findVerifyingSession(
  app: App,
  user: Pick<User, '_id'>,
  session: string | null,
): Promise<VerifyingSession> {
  if (session === null) return null;
  return await sessionStore(app).findOne({ _id: session, userId: user._id, revokedAt: null });
}

/**
 * The part of a write that gives an account to the user who verified its address. The same write ends all identities
 * and sessions except the verifying one; without a verifying session it also removes all factors. transferOwnership
 * does the rest.
 */
export function ownershipBegins(app: App, user: KnownAccount, verifying: VerifyingSession): Record<string, unknown> {
  return {
    emailVerified: true,
    [`${HIDDEN_FIELD}.ownership`]: randomToken(STAMP_BYTES),
    [`${HIDDEN_FIELD}.keptIdentity`]: verifying?.identity ?? null,
    ...(verifying ? {} : factorsEnd()),
    ...sessionsEnd(app, user, verifying?._id ?? null),
  };
}

/**
 * Gives the account to the person who verified its address and writes `set`, if the conditions hold; otherwise changes
 * nothing and returns null. Everything that person did not create ends. Without a verifying session the person may not
 * be the one who signed up, so the password is removed too unless `set` has a new one.
 */
export async function transferOwnership(
  app: App,
  project: Project,
  user: KnownAccount,
  conditions: Record<string, unknown>,
  set: Record<string, unknown>,
  verifying: VerifyingSession,
): Promise<User | null> {
  await finishLater(app, project, user._id);
  const owned = await changeUser(
    app,
    project,
    { _id: user._id, ...conditions },
    { ...(verifying ? {} : { [PASSWORD_HASH]: null }), ...set, ...ownershipBegins(app, user, verifying) },
  );
  if (owned) await finishTransfer(app, project, owned);
  return owned;
}

/** Call before a write with ownershipBegins: if the process dies after the write, a worker ends the access tokens. */
export async function finishLater(app: App, project: Project, userId: ObjectId): Promise<void> {
  const payload = { projectId: project._id.toHexString(), userId: userId.toHexString() };
  await app.jobs.enqueue(finishTransferJob, payload, { runAt: new Date(app.clock.now() + FINISH_AFTER_MS) });
}
