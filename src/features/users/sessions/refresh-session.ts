import type { App } from '../../../app.js';
import { unauthenticated } from '../../../errors.js';
import { HIDDEN_FIELD } from '../../collections/fields/field.js';
import type { Project } from '../../projects/project.js';
import { requireSigningKey } from '../../projects/token-secret.js';
import { isSessionOf } from './end-sessions.js';
import { issueAccessToken, type Client, type Tokens } from './open-session.js';
import {
  deriveSuccessor,
  findSuccessor,
  formatRefreshToken,
  hashRefreshToken,
  isGenuine,
  parseRefreshToken,
  type RefreshToken,
} from './refresh-token.js';
import { endOneSession, sessionStore, type Session } from './session.js';
import { findUser } from '../user-store.js';

/** An honest client may send two refreshes at once; within this time both get the same successor (decisions.md 2). */
const GRACE_MS = 10_000;
const KEPT_ROTATIONS = 8;

/**
 * Exchanges a refresh token for its successor and a new access token: one compare-and-swap on the session. 401
 * REFRESH_INVALID for anything but a live token, 401 REFRESH_REUSED for one replaced before the grace window, which
 * ends the whole session and its access tokens.
 */
export async function refreshSession(app: App, project: Project, presented: string, client: Client): Promise<Tokens> {
  const token = parseRefreshToken(presented);
  if (!token) throw refreshInvalid();
  // Before the token is spent: without a new access token its successor would be lost.
  requireSigningKey(app, project);
  const now = app.clock.now();
  const { session, successor } =
    (await rotate(app, project, token, now, client)) ?? (await repeat(app, project, token, now));
  const user = await findUser(app, project._id, session.userId);
  if (!user || user[HIDDEN_FIELD].disabledAt || !isSessionOf(session, user)) {
    await endOneSession(app, session, 'account changed');
    throw refreshInvalid();
  }
  return {
    accessToken: issueAccessToken(app, project, user, session, now),
    refreshToken: formatRefreshToken(successor),
  };
}

interface Rotation {
  session: Session;
  successor: RefreshToken;
}

/**
 * Puts the successor in the place of the current token, or answers null when `token` is not the current one of a live
 * session.
 */
async function rotate(
  app: App,
  project: Project,
  token: RefreshToken,
  now: number,
  { ip, userAgent }: Client,
): Promise<Rotation | null> {
  const hash = hashRefreshToken(token);
  const successor = deriveSuccessor(app.secrets, token);
  const session = await sessionStore(app).findOneAndUpdate(
    { _id: token.session, projectId: project._id, tokenHash: hash, revokedAt: null, expiresAt: { $gt: new Date(now) } },
    {
      $set: {
        tokenHash: hashRefreshToken(successor),
        usedAt: new Date(now),
        expiresAt: new Date(now + app.config.refreshTokenTtlMs),
        ip,
        userAgent,
      },
      $push: { rotated: { $each: [{ hash, at: new Date(now) }], $slice: -KEPT_ROTATIONS } },
    },
    { returnDocument: 'after' },
  );
  return session && { session, successor };
}

/** The answer to a token that is not the current one: its successor again within the grace window, else a refusal. */
async function repeat(app: App, project: Project, token: RefreshToken, now: number): Promise<Rotation> {
  const session = await sessionStore(app).findOne({ _id: token.session, projectId: project._id });
  if (!session || session.expiresAt.getTime() <= now) throw refreshInvalid();
  const hash = hashRefreshToken(token);
  if (session.revokedAt) {
    if (session.revokedFor === 'token reused' && isGenuine(app.secrets, token)) throw refreshReused();
    throw refreshInvalid();
  }
  const at = session.rotated.findIndex((rotation) => rotation.hash === hash);
  const rotation = session.rotated[at];
  // Both ways: another process's clock may be a little ahead, and a rotation from far ahead says nothing about an
  // honest client.
  if (rotation && Math.abs(now - rotation.at.getTime()) < GRACE_MS) {
    const successor = findSuccessor(app.secrets, token, session.rotated[at + 1]?.hash ?? session.tokenHash);
    if (successor) return { session, successor };
  }
  if (!rotation && !isGenuine(app.secrets, token)) throw refreshInvalid();
  await endOneSession(app, session, 'token reused');
  app.log.warn(
    { projectId: project._id.toHexString(), session: session._id },
    'refresh token used twice: session ended',
  );
  throw refreshReused();
}

function refreshInvalid(): Error {
  return unauthenticated('REFRESH_INVALID', 'The refresh token is missing, unknown or expired. Sign in again');
}

function refreshReused(): Error {
  return unauthenticated(
    'REFRESH_REUSED',
    'This refresh token was already used, so its session has ended. Sign in again',
  );
}
