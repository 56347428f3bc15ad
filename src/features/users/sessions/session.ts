import type { ObjectId } from 'bson';
import type { App } from '../../../app.js';
import { storeOf } from '../../../platform/database/database.js';
import { cutOffTokens } from '../../access/token-cutoff.js';
import type { User } from '../user.js';

/**
 * How a user authenticated (accounts.md 2): password, email code, sign-in provider, authenticator app, recovery code or
 * passkey; `anon` for anonymous users.
 */
export const AUTH_METHODS = ['pwd', 'otp', 'social', 'totp', 'recovery', 'passkey', 'anon'] as const;
export type AuthMethod = (typeof AUTH_METHODS)[number];

/** The authentication that opens a session. */
export interface Authentication {
  method: AuthMethod;
  /** The second factor, where one was asked for. */
  second?: AuthMethod;
  /** The linked identity, of `social`. */
  identity?: string;
}

export const BY_PASSWORD: Authentication = { method: 'pwd' };

/** The stored fields of a session's authentication. */
interface StoredAuthentication {
  amr?: readonly AuthMethod[];
  authAt?: Date;
  createdAt: Date;
}

/** The authentication of a session. Sessions opened with a password store nothing. */
export interface SessionAuthentication {
  amr: readonly AuthMethod[];
  /** The time of the last authentication. */
  authAt: Date;
}

/** How a session was authenticated. */
export function authenticationOf({ amr = ['pwd'], authAt, createdAt }: StoredAuthentication): SessionAuthentication {
  return { amr, authAt: authAt ?? createdAt };
}

export const SESSIONS = 'sessions';

export type RevokeReason =
  'signed out' | 'token reused' | 'password changed' | 'account changed' | 'account disabled' | 'revoked';

/** A family of refresh tokens, from one sign-in to its end: one document, so that rotation is one compare-and-swap. */
export interface Session {
  /** The uuid in front of its tokens. */
  _id: string;
  projectId: ObjectId;
  userId: ObjectId;
  /** The account's, when the session began. */
  stamp?: string;
  /** The linked identity that opened it, if one did. */
  identity?: string;
  /** Authentication methods and time of the last one; absent = password, at `createdAt` (`authenticationOf`). */
  amr?: AuthMethod[];
  authAt?: Date;
  /** The last authentication with a second factor; absent = none. */
  mfaAt?: Date;
  /** SHA-256 of the token that is good now. */
  tokenHash: string;
  /** Tokens replaced last, for the grace window; no more than a few. */
  rotated: { hash: string; at: Date }[];
  createdAt: Date;
  usedAt: Date;
  /** Moves with each use. */
  expiresAt: Date;
  revokedAt: Date | null;
  revokedFor: RevokeReason | null;
  ip: string;
  userAgent: string;
}

export const sessionStore = storeOf<Session>(SESSIONS);

/** A user's live sessions, the one used last first. */
export function findLiveSessions(app: App, projectId: ObjectId, { _id }: Pick<User, '_id'>) {
  return sessionStore(app)
    .find({ projectId, userId: _id, revokedAt: null, expiresAt: { $gt: new Date(app.clock.now()) } })
    .sort({ usedAt: -1, _id: -1 });
}

/**
 * Ends one session with its access tokens; false when it had ended already. The tokens end first: a process that is
 * killed in between leaves a session that can be ended again, never a token that works.
 */
export async function endOneSession(
  app: App,
  { _id, projectId, userId }: Pick<Session, '_id' | 'projectId' | 'userId'>,
  reason: RevokeReason,
): Promise<boolean> {
  await cutOffTokens(app, projectId, userId, { session: _id });
  const { modifiedCount } = await sessionStore(app).updateOne(
    { _id, revokedAt: null },
    { $set: { revokedAt: new Date(app.clock.now()), revokedFor: reason } },
  );
  return modifiedCount === 1;
}

/** Ends all sessions of a user, or all but one; answers how many. */
export async function revokeSessions(
  app: App,
  projectId: ObjectId,
  userId: ObjectId,
  reason: RevokeReason,
  except: string | null = null,
): Promise<number> {
  const { modifiedCount } = await sessionStore(app).updateMany(
    { projectId, userId, revokedAt: null, ...(except !== null && { _id: { $ne: except } }) },
    { $set: { revokedAt: new Date(app.clock.now()), revokedFor: reason } },
  );
  return modifiedCount;
}
