import type { ObjectId } from 'bson';
import type { App } from '../../app.js';
import { locked } from '../../errors.js';
import { isDuplicateKey, type Store } from '../../platform/database.js';

export const LOGIN_FAILURES = 'login_failures';

const MAX_FAILURES = 5;
const LOCK_MS = 15 * 60_000;

/** Failures in a row of one project, address and IP. The id is a keyed hash of the three: the record names nobody. */
interface LoginFailures {
  _id: string;
  projectId: ObjectId;
  count: number;
  /** When the count is forgotten; with five failures the end of the lock. */
  expiresAt: Date;
}

function failureStore(app: Pick<App, 'db'>): Store<LoginFailures> {
  return app.db.collection<LoginFailures>(LOGIN_FAILURES);
}

/** Counts wrong passwords (decisions.md 2), in the database, so that all processes count together. */
export interface LoginLock {
  /** 423 ACCOUNT_LOCKED with Retry-After while locked. */
  refuseLocked(): Promise<void>;
  countFailure(): Promise<void>;
  /** Forgets the failures after a success. */
  clear(): Promise<void>;
}

export function loginLock(app: App, projectId: ObjectId, email: string, ip: string): LoginLock {
  const id = app.secrets.mac('login-failures', JSON.stringify([projectId.toHexString(), email, ip]));
  let known = true;
  return {
    async refuseLocked() {
      const failures = await failureStore(app).findOne({ _id: id });
      known = failures !== null;
      const leftMs = (failures?.expiresAt.getTime() ?? 0) - app.clock.now();
      if (!failures || failures.count < MAX_FAILURES || leftMs <= 0) return;
      throw locked('ACCOUNT_LOCKED', 'Too many failed sign-ins: try again later', { retryAfterSeconds: leftMs / 1000 });
    },
    countFailure: () => countFailure(app, projectId, id),
    async clear() {
      if (known) await failureStore(app).deleteOne({ _id: id });
    },
  };
}

/** One more failure, or the first of a new count when the old one is over; atomic at each step. */
async function countFailure(app: App, projectId: ObjectId, id: string): Promise<void> {
  for (;;) {
    const now = app.clock.now();
    const expiresAt = new Date(now + LOCK_MS);
    const counted = await failureStore(app).updateOne(
      { _id: id, expiresAt: { $gt: new Date(now) } },
      { $inc: { count: 1 }, $set: { expiresAt } },
    );
    if (counted.matchedCount === 1) return;
    const restarted = await failureStore(app).updateOne(
      { _id: id, expiresAt: { $lte: new Date(now) } },
      { $set: { count: 1, expiresAt } },
    );
    if (restarted.matchedCount === 1) return;
    try {
      await failureStore(app).insertOne({ _id: id, projectId, count: 1, expiresAt });
      return;
    } catch (error) {
      if (!isDuplicateKey(error)) throw error;
    }
  }
}
