import type { App } from '../../../app.js';
import { HIDDEN_FIELD } from '../../collections/fields/field.js';
import type { Project } from '../../projects/project.js';
import { endSessions, sessionsEnd, type KnownAccount } from '../sessions/end-sessions.js';
import { removeDeadLinks, removeDeadPasskeys } from '../accounts/sign-in-methods.js';
import type { User } from '../user.js';
import { randomToken } from '../../../platform/ids.js';
import { changeUser } from '../accounts/change-user.js';
import { factorsEnd } from '../factors/factors.js';
import { sessionStore, type Session } from '../sessions/session.js';
import { requireCollection } from '../../collections/collection-store.js';
import { USERS } from '../../collections/users-collection.js';
import { insertUser } from '../accounts/insert-user.js';
import { readNewUser } from '../accounts/new-user.js';
import type { Client } from '../sessions/open-session.js';
import { askSignUp } from '../user-hooks.js';

/** Removes the records of what a write with ownershipBegins has ended; they are refused with or without it. */
export async function removeEnded(app: App, project: Project, user: User): Promise<void> {
  await endSessions(app, project, user, 'account changed');
  await removeDeadLinks(app, project, user);
  await removeDeadPasskeys(app, project, user);
}

const STAMP_BYTES = 12;
const PASSWORD_HASH = `${HIDDEN_FIELD}.passwordHash`;

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
 * and sessions except the verifying one; without a verifying session it also removes all factors. removeEnded
 * removes their records.
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
  const owned = await changeUser(
    app,
    project,
    { _id: user._id, ...conditions },
    { ...(verifying ? {} : { [PASSWORD_HASH]: null }), ...set, ...ownershipBegins(app, user, verifying) },
  );
  if (owned) await removeEnded(app, project, owned);
  return owned;
}

/**
 * The account of an address, for the person who has just verified the address outside the account's sessions. If the
 * address was unverified, password, sessions, factors and identities are removed. Null if the account changed
 * in between; read it again.
 */
export async function claimAccount(app: App, project: Project, user: User): Promise<User | null> {
  if (user.emailVerified) return user;
  return transferOwnership(app, project, user, { email: user.email, emailVerified: false }, {}, null);
}

/**
 * A new account without a password for the person who verified the address. 409 EMAIL_TAKEN or DUPLICATE_VALUE, 400
 * VALIDATION_FAILED where the schema of `users` requires more, 403 QUOTA_EXCEEDED.
 */
export async function createVerifiedUser(
  app: App,
  project: Project,
  { email, client }: { email: string; client: Client },
  fields: Record<string, unknown> = {},
): Promise<User> {
  const body = { email, emailVerified: true, ...fields };
  const collection = await requireCollection(app, project._id, USERS);
  const options = { setter: 'project', needsPassword: false } as const;
  const { user: wanted } = readNewUser(collection, body, options, app.clock.now());
  const user = await askSignUp(app, project, collection, wanted, client);
  await insertUser(app, collection, user);
  return user;
}
