import { randomUUID } from 'node:crypto';
import type { App } from '../../../app.js';
import { unauthenticated } from '../../../errors.js';
import { levelOf } from '../../access/caller.js';
import { signAccessToken } from '../../access/sign-access-token.js';
import { HIDDEN_FIELD } from '../../collections/fields/field.js';
import type { Project } from '../../projects/project.js';
import type { Uses } from '../../quota/insert-service-record.js';
import { insertServiceRecord } from '../../quota/insert-service-record.js';
import { formatRefreshToken, generateRefreshToken, hashRefreshToken } from './refresh-token.js';
import { BY_PASSWORD, authenticationOf, type Authentication, sessionStore, type Session } from './session.js';
import type { User } from '../user.js';
import { askSignIn } from '../user-hooks.js';
import { userStore } from '../user-store.js';

/** The client of a request; a session keeps its address and user agent. */
export interface Client {
  ip: string;
  userAgent: string;
  /** In calls of own code; absent = none has led here. */
  depth?: number;
  /** Aborted when the client leaves: it waits for nothing then. */
  gone?: AbortSignal;
}

/** What is stored together with a session. */
interface BesideSession {
  uses?: Uses;
  storeUser?: () => Promise<void>;
}

/** The tokens of a client that has proved its identity. */
export interface Tokens {
  accessToken: string;
  refreshToken: string;
}

/**
 * Starts a session for a user just read, together with the writes that use up its credentials. The account is read
 * at again after the session is stored: an operator who disables it, deletes it or changes its password in between ends
 * this session too, with 401. A user who is not stored yet is stored by `storeUser` after the session, so that there is
 * never an account whose sign-up was refused for its session.
 */
export async function openSession(
  app: App,
  project: Project,
  user: User,
  client: Client,
  { method, second, identity }: Authentication,
  { uses, storeUser }: BesideSession = {},
): Promise<Tokens> {
  const { ip, userAgent } = client;
  // About a sign-up own code was asked as such.
  if (!storeUser) await askSignIn(app, project, user, client, method);
  const id = randomUUID();
  const token = generateRefreshToken(app.secrets, id);
  const now = app.clock.now();
  const { stamp } = user[HIDDEN_FIELD];
  const amr = second === undefined ? [method] : [method, second];
  const authentication = {
    createdAt: new Date(now),
    ...((method !== BY_PASSWORD.method || second !== undefined) && { amr }),
    ...(levelOf(amr) === 2 && { mfaAt: new Date(now) }),
  };
  const tokens = {
    accessToken: issueAccessToken(app, project, user, { _id: id, ...authentication }, now),
    refreshToken: formatRefreshToken(token),
  };
  const session: Session = {
    _id: id,
    projectId: project._id,
    userId: user._id,
    ...(stamp !== undefined && { stamp }),
    ...(identity !== undefined && { identity }),
    tokenHash: hashRefreshToken(token),
    rotated: [],
    ...authentication,
    usedAt: new Date(now),
    expiresAt: new Date(now + app.config.refreshTokenTtlMs),
    revokedAt: null,
    revokedFor: null,
    ip,
    userAgent,
  };
  await insertServiceRecord(app, 'sessions', session, uses);
  try {
    await storeUser?.();
  } catch (error) {
    await forgetSession(app, id);
    throw error;
  }
  const unchanged = await userStore(app, project._id).findOne({
    _id: user._id,
    isDeleted: false,
    [`${HIDDEN_FIELD}.disabledAt`]: null,
    [`${HIDDEN_FIELD}.stamp`]: stamp ?? null,
  });
  if (unchanged) return tokens;
  await forgetSession(app, id);
  throw unauthenticated('INVALID_CREDENTIALS', 'The account was changed while you signed in. Try again');
}

/** Also on a full disk; its tokens were never returned. */
async function forgetSession(app: App, _id: string): Promise<void> {
  await app.db.useReserve(() => sessionStore(app).deleteOne({ _id }));
}

/**
 * An access token of a session, dated no earlier than the account's last cutoff, so that a token given after it always
 * works.
 */
export function issueAccessToken(
  app: App,
  project: Project,
  user: User,
  session: Pick<Session, '_id' | 'createdAt' | 'amr' | 'authAt'>,
  now: number,
): string {
  const issuedMs = Math.max(now, (user[HIDDEN_FIELD].tokensSince?.getTime() ?? 0) + 1);
  const { amr, authAt } = authenticationOf(session);
  const id = { session: session._id, issuedMs };
  const authentication = { amr: [...amr], authMs: authAt.getTime() };
  return signAccessToken(app, project, user._id.toHexString(), app.config.accessTokenTtlMs, id, authentication);
}
