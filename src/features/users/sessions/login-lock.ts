import type { ObjectId } from 'bson';
import type { App } from '../../../app.js';
import { locked } from '../../../errors.js';
import { CLOCKS_DIFFER_MS } from '../../../platform/time/clock.js';
import { clientNetwork } from '../../../http/requests/client-address.js';
import { unlessDuplicate } from '../../../platform/database/database.js';
import { storeOf } from '../../../platform/database/store-of.js';

export const LOGIN_FAILURES = 'login_failures';

const MINUTE_MS = 60_000;

/** The limit of failures of one kind, and the time after which they are forgotten. */
interface Cap {
  max: number;
  ms: number;
  /** Each failure restarts the time; otherwise the first one settles it. */
  sliding: boolean;
  /** Why a sign-in is refused, and the next step. */
  message: string;
}

/** Wrong passwords for an address from one network, in a row. */
const NETWORK: Cap = {
  max: 5,
  ms: 15 * MINUTE_MS,
  sliding: true,
  message: 'Too many wrong passwords: try again later',
};
/** Wrong passwords for an address from everywhere, so that a thousand networks are not five thousand guesses. */
const ACCOUNT: Cap = {
  max: 100,
  ms: 24 * 60 * MINUTE_MS,
  sliding: false,
  message: 'Too many failed sign-ins from many places: reset the password, or try again later',
};

/** Wrong codes of a second factor for an account from everywhere (accounts.md 6). */
const FACTOR: Cap = {
  max: 20,
  ms: 24 * 60 * MINUTE_MS,
  sliding: false,
  message: 'Too many wrong codes of the second factor: try again later, or have the project reset it',
};

/**
 * Failures of one project and address, from one network or from all. The id is a keyed hash: the record names nobody.
 */
interface LoginFailures {
  _id: string;
  projectId: ObjectId;
  count: number;
  /** The time at which the count is forgotten; with too many failures the end of the lock. */
  expiresAt: Date;
}

const failureStore = storeOf<LoginFailures>(LOGIN_FAILURES);

/** Counts wrong passwords (decisions.md 2), in the database, so that all processes count together. */
export interface LoginLock {
  /** 423 ACCOUNT_LOCKED with Retry-After while locked. */
  refuseLocked(): Promise<void>;
  /**
   * One more wrong password; 423 when the lock has come since, so that of any number of guesses at once no more
   * than five are told wrong.
   */
  countFailure(): Promise<void>;
  /** A right password: forgets the failures of this network, or 423 when the lock has come since. */
  admit(): Promise<void>;
  /**
   * Counts a guess at the second factor before it is compared, among the failures of the network and of the factor from
   * everywhere: 423 when one of them is full. Takes it back when it was right.
   */
  guessFactor(compare: () => Promise<boolean>): Promise<boolean>;
  /** Forgets the failures of this network and of all together, and the locks: for who has proven the address. */
  clear(): Promise<void>;
}

/**
 * The lock of one address for one client: five failures in a row from its network (a /64 of IPv6), and a hundred a day
 * from all networks. `isKnown` is asked only beyond the latter: it says that the account is signed in to from this
 * network, which strangers' guesses must not keep out.
 */
export function loginLock(
  app: App,
  projectId: ObjectId,
  email: string,
  ip: string,
  isKnown: (network: string) => Promise<boolean>,
): LoginLock {
  const network = clientNetwork(ip);
  const idOf = (...parts: string[]): string =>
    app.secrets.mac('login-failures', JSON.stringify([projectId.toHexString(), email, ...parts]));
  const [here, everywhere, factor] = [idOf(network), idOf(), idOf('second factor', 'everywhere')];
  const refuseEverywhere = async (): Promise<void> => {
    const lock = await findLock(app, everywhere, ACCOUNT);
    if (lock && !(await isKnown(network))) throw lock;
  };
  return {
    async refuseLocked() {
      await hasFailures(app, here);
      await refuseEverywhere();
    },
    async countFailure() {
      const lockHere = await addFailure(app, projectId, here, NETWORK);
      if (lockHere) throw lockHere;
      const lock = await addFailure(app, projectId, everywhere, ACCOUNT);
      if (lock && !(await isKnown(network))) throw lock;
    },
    async admit() {
      await refuseEverywhere();
      await admit(app, here);
    },
    async guessFactor(compare) {
      for (const [id, cap] of [[here, NETWORK] as const, [factor, FACTOR] as const]) {
        const lock = await addFailure(app, projectId, id, cap);
        if (lock) throw lock;
      }
      if (!(await compare())) return false;
      await Promise.all([
        failureStore(app).deleteOne({ _id: here }),
        failureStore(app).updateOne({ _id: factor, count: { $gt: 0 } }, { $inc: { count: -1 } }),
      ]);
      return true;
    },
    clear: async () => void (await failureStore(app).deleteMany({ _id: { $in: [here, everywhere] } })),
  };
}

/** The refusal that failures amount to; null when they are few or over, undefined when there are none. */
async function findLock(app: App, id: string, cap: Cap): Promise<Error | null | undefined> {
  const failures = await failureStore(app).findOne({ _id: id });
  if (!failures) return undefined;
  const leftMs = failures.expiresAt.getTime() - app.clock.now();
  if (failures.count < cap.max || leftMs <= 0 || leftMs > cap.ms + CLOCKS_DIFFER_MS) return null;
  return locked('ACCOUNT_LOCKED', cap.message, { retryAfterSeconds: leftMs / 1000 });
}

/** True if failures of a network are noted; 423 when they are a lock. */
async function hasFailures(app: App, id: string): Promise<boolean> {
  const lock = await findLock(app, id, NETWORK);
  if (lock) throw lock;
  return lock === null;
}

/** Failures that are forgotten. Those that end later than a lock can were counted before the clock was set back. */
function isOver(nowMs: number, cap: Cap): Record<'expiresAt', object>[] {
  const latest = new Date(nowMs + cap.ms + CLOCKS_DIFFER_MS);
  return [{ expiresAt: { $lte: new Date(nowMs) } }, { expiresAt: { $gt: latest } }];
}

/** Almost nobody has failures, so almost everybody is admitted by one read. */
async function admit(app: App, id: string): Promise<void> {
  while (await hasFailures(app, id)) {
    const forgotten = await failureStore(app).deleteOne({
      _id: id,
      $or: [{ count: { $lt: NETWORK.max } }, ...isOver(app.clock.now(), NETWORK)],
    });
    if (forgotten.deletedCount === 1) return;
  }
}

/**
 * One more failure, or the first of a new count when the old one is over, atomic at each step; or the lock, when there
 * are too many already.
 */
async function addFailure(app: App, projectId: ObjectId, id: string, cap: Cap): Promise<Error | null> {
  for (;;) {
    const now = app.clock.now();
    const expiresAt = new Date(now + cap.ms);
    // Almost nobody has failures: a write that finds none costs as much as one that does.
    const isFirst = (await failureStore(app).findOne({ _id: id }, { projection: { _id: 1 } })) === null;
    if (isFirst) {
      if (await unlessDuplicate(failureStore(app).insertOne({ _id: id, projectId, count: 1, expiresAt }))) return null;
      continue;
    }
    const counted = await failureStore(app).updateOne(
      { _id: id, count: { $lt: cap.max }, $nor: isOver(now, cap) },
      { $inc: { count: 1 }, ...(cap.sliding && { $set: { expiresAt } }) },
    );
    if (counted.matchedCount === 1) return null;
    const restarted = await failureStore(app).updateOne(
      { _id: id, $or: isOver(now, cap) },
      { $set: { count: 1, expiresAt } },
    );
    if (restarted.matchedCount === 1) return null;
    const lock = await findLock(app, id, cap);
    if (lock) return lock;
  }
}
