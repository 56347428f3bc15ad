import type { ObjectId } from 'bson';
import type { App } from '../../app.js';
import { locked } from '../../errors.js';
import { CLOCKS_DIFFER_MS } from '../../platform/clock.js';
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
  /** One more wrong password; 423 when the lock has come meanwhile, so that of any number of guesses at once no more than five are told wrong. */
  countFailure(): Promise<void>;
  /** A right password: forgets the failures, or 423 when the lock has come meanwhile. */
  admit(): Promise<void>;
  /** Forgets the failures, and the lock. */
  clear(): Promise<void>;
}

export function loginLock(app: App, projectId: ObjectId, email: string, ip: string): LoginLock {
  const id = app.secrets.mac('login-failures', JSON.stringify([projectId.toHexString(), email, ip]));
  return {
    refuseLocked: async () => void (await hasFailures(app, id)),
    countFailure: () => countFailure(app, projectId, id),
    admit: () => admit(app, id),
    clear: async () => void (await failureStore(app).deleteOne({ _id: id })),
  };
}

/** Whether failures are noted; 423 when they are a lock. */
async function hasFailures(app: App, id: string): Promise<boolean> {
  const failures = await failureStore(app).findOne({ _id: id });
  if (!failures) return false;
  const leftMs = failures.expiresAt.getTime() - app.clock.now();
  if (failures.count < MAX_FAILURES || leftMs <= 0 || leftMs > LOCK_MS + CLOCKS_DIFFER_MS) return true;
  throw locked('ACCOUNT_LOCKED', 'Too many failed sign-ins: try again later', { retryAfterSeconds: leftMs / 1000 });
}

/** Failures that are forgotten. Those that end later than a lock can were counted before the clock was set back. */
function isOver(nowMs: number): Record<'expiresAt', object>[] {
  const latest = new Date(nowMs + LOCK_MS + CLOCKS_DIFFER_MS);
  return [{ expiresAt: { $lte: new Date(nowMs) } }, { expiresAt: { $gt: latest } }];
}

/** Almost nobody has failures, so almost everybody is admitted by one read. */
async function admit(app: App, id: string): Promise<void> {
  while (await hasFailures(app, id)) {
    const forgotten = await failureStore(app).deleteOne({
      _id: id,
      $or: [{ count: { $lt: MAX_FAILURES } }, ...isOver(app.clock.now())],
    });
    if (forgotten.deletedCount === 1) return;
  }
}

/** One more failure, or the first of a new count when the old one is over; atomic at each step. */
async function countFailure(app: App, projectId: ObjectId, id: string): Promise<void> {
  for (;;) {
    const now = app.clock.now();
    const expiresAt = new Date(now + LOCK_MS);
    const counted = await failureStore(app).updateOne(
      { _id: id, count: { $lt: MAX_FAILURES }, $nor: isOver(now) },
      { $inc: { count: 1 }, $set: { expiresAt } },
    );
    if (counted.matchedCount === 1) return;
    const restarted = await failureStore(app).updateOne(
      { _id: id, $or: isOver(now) },
      { $set: { count: 1, expiresAt } },
    );
    if (restarted.matchedCount === 1) return;
    try {
      await failureStore(app).insertOne({ _id: id, projectId, count: 1, expiresAt });
      return;
    } catch (error) {
      if (!isDuplicateKey(error)) throw error;
      await hasFailures(app, id);
    }
  }
}
