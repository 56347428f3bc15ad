import type { ObjectId } from 'bson';
import type { App } from '../../../app.js';
import { storeOf } from '../../../platform/database/store-of.js';
import type { Transaction } from '../../../platform/database/database.js';
import { randomToken, sha256Hex } from '../../../platform/ids.js';
import { CLOCKS_DIFFER_MS } from '../../../platform/time/clock.js';
import { keepRecord } from '../../quota/keep-record.js';
import type { Project } from '../../projects/project.js';

export const ACCOUNT_CHALLENGES = 'account_challenges';

const CHALLENGE_MS = 5 * 60_000;
const MAX_TRIES = 5;

export type ChallengePurpose = 'mfa' | 'passkey-register' | 'passkey-login' | 'handover';

/** A step that a client has begun and is to finish by a token that it got (accounts.md 3). */
interface AccountChallenge {
  /** SHA-256 of the token. */
  _id: string;
  purpose: ChallengePurpose;
  projectId: ObjectId;
  userId: ObjectId | null;
  /** What the step rests on, as JSON. */
  sealed: string;
  tries: number;
  expiresAt: Date;
}

const challengeStore = storeOf<AccountChallenge>(ACCOUNT_CHALLENGES);

/** Begins a step and answers its token, good for five minutes and five tries. */
export async function openChallenge(
  app: App,
  project: Project,
  { purpose, userId, held }: { purpose: ChallengePurpose; userId: ObjectId | null; held: object },
): Promise<string> {
  const token = randomToken(32);
  const _id = sha256Hex(token);
  await keepRecord(app, 'accountChallenges', {
    _id,
    purpose,
    projectId: project._id,
    userId,
    sealed: app.secrets.seal(JSON.stringify(held), sealContext(_id)),
    tries: 0,
    expiresAt: new Date(app.clock.now() + CHALLENGE_MS),
  });
  return token;
}

/** A challenge whose token was presented. */
export interface MetChallenge {
  userId: ObjectId | null;
  held: unknown;
  use: TakesChallenge;
}

/** Uses a challenge up; false where another transaction did so first. */
export type TakesChallenge = (tx: Transaction) => boolean;

/** Counts a try first; null for a token that is unknown, used up, too old or tried too often. */
export async function meetChallenge(
  app: App,
  project: Project,
  purpose: ChallengePurpose,
  token: string,
): Promise<MetChallenge | null> {
  const met = await challengeStore(app).findOneAndUpdate(
    { ...live(app, project, purpose, token), tries: { $lt: MAX_TRIES } },
    { $inc: { tries: 1 } },
  );
  if (!met) return null;
  const { _id } = met;
  return {
    userId: met.userId,
    held: JSON.parse(app.secrets.open(met.sealed, sealContext(_id))) as unknown,
    use: useOf(_id),
  };
}

const useOf =
  (_id: string): TakesChallenge =>
  (tx) => {
    if (!tx.get(ACCOUNT_CHALLENGES, _id)) return false;
    tx.remove(ACCOUNT_CHALLENGES, _id);
    return true;
  };

/** What uses a challenge up; null for one that is unknown, used or too old. */
export async function findChallenge(
  app: App,
  project: Project,
  purpose: ChallengePurpose,
  token: string,
): Promise<TakesChallenge | null> {
  const found = await challengeStore(app).findOne(live(app, project, purpose, token));
  return found && useOf(found._id);
}

/** Uses a challenge up by one write, and answers what it held; null for one that is unknown, used or too old. */
export async function takeChallenge(
  app: App,
  project: Project,
  purpose: ChallengePurpose,
  token: string,
): Promise<Pick<MetChallenge, 'userId' | 'held'> | null> {
  const taken = await challengeStore(app).findOneAndDelete(live(app, project, purpose, token));
  if (!taken) return null;
  const held = JSON.parse(app.secrets.open(taken.sealed, sealContext(taken._id))) as unknown;
  return { userId: taken.userId, held };
}

function live(app: App, project: Project, purpose: ChallengePurpose, token: string) {
  const now = app.clock.now();
  const expiresAt = { $gt: new Date(now), $lte: new Date(now + CHALLENGE_MS + CLOCKS_DIFFER_MS) };
  return { _id: sha256Hex(token), purpose, projectId: project._id, expiresAt };
}

const sealContext = (id: string): string => `account-challenge:${id}`;
