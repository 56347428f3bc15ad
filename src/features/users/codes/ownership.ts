import type { ObjectId } from 'bson';
import type { App } from '../../../app.js';
import { randomToken } from '../../../platform/ids.js';
import { HIDDEN_FIELD } from '../../collections/fields/field.js';
import type { Project } from '../../projects/project.js';
import { changeUser } from '../accounts/change-user.js';
import { sessionsEnd, type KnownAccount } from '../sessions/end-sessions.js';
import { factorsEnd } from '../factors/factors.js';
import { finishTakeOver, finishTakeOverJob } from './finish-take-over.job.js';
import { sessionStore, type Session } from '../sessions/session.js';
import type { User } from '../user.js';

const STAMP_BYTES = 12;
const PASSWORD_HASH = `${HIDDEN_FIELD}.passwordHash`;
const FINISH_AFTER_MS = 30_000;

/** The session, if any, in which an address is proven: it goes on, and so does the identity it was opened by. */
export type Prover = Pick<Session, '_id' | 'identity'> | null;

/** The live session of a user that a request names, for proving an address in it. */
export async function findProver(app: App, user: Pick<User, '_id'>, session: string | null): Promise<Prover> {
  if (session === null) return null;
  return await sessionStore(app).findOne({ _id: session, userId: user._id, revokedAt: null });
}

/**
 * The part of a write by which an account passes to the user who has proven its address: all identities and sessions
 * but the prover's, and without a prover all factors, are over with that very write, whatever becomes of its process.
 * takeOver does the rest.
 */
export function ownershipBegins(app: App, user: KnownAccount, prover: Prover): Record<string, unknown> {
  return {
    emailVerified: true,
    [`${HIDDEN_FIELD}.ownership`]: randomToken(STAMP_BYTES),
    [`${HIDDEN_FIELD}.keptIdentity`]: prover?.identity ?? null,
    ...(prover ? {} : factorsEnd()),
    ...sessionsEnd(app, user, prover?._id ?? null),
  };
}

/**
 * Passes the account to the person who has proven its address, and writes `set`, as long as the conditions hold: what
 * that person did not make ends. Outside the account's sessions (no prover) the person may be another than the one who
 * signed up, so the password goes too unless `set` has a new one. Null, with nothing changed, when the conditions do
 * not hold.
 */
export async function takeOver(
  app: App,
  project: Project,
  user: KnownAccount,
  conditions: Record<string, unknown>,
  set: Record<string, unknown>,
  prover: Prover,
): Promise<User | null> {
  await finishLater(app, project, user._id);
  const owned = await changeUser(
    app,
    project,
    { _id: user._id, ...conditions },
    { ...(prover ? {} : { [PASSWORD_HASH]: null }), ...set, ...ownershipBegins(app, user, prover) },
  );
  if (owned) await finishTakeOver(app, project, owned);
  return owned;
}

/**
 * To be called before a write with ownershipBegins: should its process die right after it, a worker ends the access
 * tokens.
 */
export async function finishLater(app: App, project: Project, userId: ObjectId): Promise<void> {
  const payload = { projectId: project._id.toHexString(), userId: userId.toHexString() };
  await app.jobs.enqueue(finishTakeOverJob, payload, { runAt: new Date(app.clock.now() + FINISH_AFTER_MS) });
}
