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
 * but the prover's, and without a prover all factors unless they stay, are over with that very write, whatever becomes
 * of its process. takeOver does the rest.
 */
export function ownershipBegins(
  app: App,
  user: KnownAccount,
  prover: Prover,
  keepsFactors = prover !== null,
): Record<string, unknown> {
  return {
    emailVerified: true,
    [`${HIDDEN_FIELD}.ownership`]: randomToken(STAMP_BYTES),
    [`${HIDDEN_FIELD}.keptIdentity`]: prover?.identity ?? null,
    ...(keepsFactors ? {} : factorsEnd()),
    ...sessionsEnd(app, user, prover?._id ?? null),
  };
}

/**
 * Writes `set` and the new ownership to the account as long as the conditions hold, and ends what came before; null,
 * with nothing changed, when they do not.
 */
export async function takeOver(
  app: App,
  project: Project,
  user: KnownAccount,
  conditions: Record<string, unknown>,
  set: Record<string, unknown>,
  { prover, keepsFactors }: { prover: Prover; keepsFactors?: boolean },
): Promise<User | null> {
  await finishLater(app, project, user._id);
  const owned = await changeUser(
    app,
    project,
    { _id: user._id, ...conditions },
    { ...set, ...ownershipBegins(app, user, prover, keepsFactors) },
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
