import { randomUUID } from 'node:crypto';
import type { App } from '../../../app.js';
import { unauthenticated } from '../../../errors.js';
import { levelOf } from '../../access/caller.js';
import { signAccessToken } from '../../access/sign-access-token.js';
import { HIDDEN_FIELD } from '../../collections/fields/field.js';
import type { WriteTurn } from '../../../platform/database/database.js';
import type { Project } from '../../projects/project.js';
import { requireRoomFor } from '../../quota/database-quota.js';
import { insertServiceRecord, type Uses } from '../../quota/insert-service-record.js';
import { formatRefreshToken, generateRefreshToken, hashRefreshToken } from './refresh-token.js';
import { BY_PASSWORD, authenticationOf, SESSIONS, type Authentication, type Session } from './session.js';
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

/** The tokens of a client that has proved its identity. */
export interface Tokens {
  accessToken: string;
  refreshToken: string;
}

/**
 * Starts a session for a user, by the transaction that uses up the credentials. An account that was disabled or deleted
 * since it was read, or whose sessions were ended, gets none: 401.
 */
export async function openSession(
  app: App,
  project: Project,
  user: User,
  client: Client,
  authentication: Authentication,
  uses?: Uses,
): Promise<Tokens> {
  await askSignIn(app, project, user, client, authentication.method);
  const { session, tokens } = newSession(app, project, user, client, authentication);
  const { collectionName } = userStore(app, project._id);
  await insertServiceRecord(app, 'sessions', session, (tx) => {
    uses?.(tx);
    const stored = tx.get<User>(collectionName, user._id);
    const notes = stored?.[HIDDEN_FIELD];
    if (stored?.isDeleted === false && !notes!.disabledAt && notes!.stamp === session.stamp) return;
    throw unauthenticated('INVALID_CREDENTIALS', 'The account was changed while you signed in. Try again');
  });
  return tokens;
}

/**
 * The session of a user who is not stored yet: its tokens, and the turn that stores it in the transaction of the user.
 * About a sign-up own code was asked as such. 403 QUOTA_EXCEEDED.
 */
export async function openFirstSession(
  app: App,
  project: Project,
  user: User,
  client: Client,
  authentication: Authentication,
): Promise<{ tokens: Tokens; storing: WriteTurn }> {
  const { session, tokens } = newSession(app, project, user, client, authentication);
  await requireRoomFor(app, project._id, { kept: 'sessions' });
  return { tokens, storing: { collection: SESSIONS, id: session._id, isNew: true, run: () => ({ ...session }) } };
}

function newSession(
  app: App,
  project: Project,
  user: User,
  { ip, userAgent }: Client,
  { method, second, identity }: Authentication,
): { session: Session; tokens: Tokens } {
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
  return { session, tokens };
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
