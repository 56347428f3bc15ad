import type { ObjectId } from 'bson';
import type { App } from '../../../app.js';
import { locked } from '../../../errors.js';
import { DAY_MS } from '../../../platform/time/clock.js';
import { clientNetwork } from '../../../http/requests/client-address.js';
import { type Cap, clearCounters, counterId, countEvent, findWait, forgetEvents, takeBack } from '../counters.js';

/** A limit of failures, and why a sign-in is then refused with the next step. */
type Lock = Cap & { message: string };

/** Wrong passwords for an address from one network. */
const NETWORK: Lock = {
  max: 5,
  ms: 15 * 60_000,
  inARow: true,
  message: 'Too many wrong passwords: try again later',
};
/** Wrong passwords for an address from everywhere, so that a thousand networks are not five thousand guesses. */
const ACCOUNT: Lock = {
  max: 100,
  ms: DAY_MS,
  message: 'Too many failed sign-ins from many places: reset the password, or try again later',
};

/** Wrong codes of a second factor for an account from everywhere (accounts.md 6). */
const FACTOR: Lock = {
  max: 20,
  ms: DAY_MS,
  message: 'Too many wrong codes of the second factor: try again later, or have the project reset it',
};

/** Counts wrong passwords (decisions.md 2), in the database, so that all processes count together. */
export interface LoginLock {
  /** 423 ACCOUNT_LOCKED with Retry-After while locked. */
  rejectLocked(): Promise<void>;
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
  /** Forgets the failures of this network and of all together, and the locks: after the address is verified. */
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
  const idOf = (...parts: string[]): string => counterId(app, projectId, 'failures', email, ...parts);
  const [here, everywhere, factor] = [idOf(network), idOf(), idOf('second factor', 'everywhere')];
  const rejectHere = async (): Promise<boolean> => {
    const waitMs = await findWait(app, here, NETWORK);
    if (waitMs) throw refusal(NETWORK, waitMs);
    return waitMs !== null;
  };
  const rejectEverywhere = async (): Promise<void> => {
    const waitMs = await findWait(app, everywhere, ACCOUNT);
    if (waitMs && !(await isKnown(network))) throw refusal(ACCOUNT, waitMs);
  };
  return {
    async rejectLocked() {
      await rejectHere();
      await rejectEverywhere();
    },
    async countFailure() {
      const counted = await countEvent(app, projectId, here, [NETWORK]);
      if ('waitMs' in counted) throw refusal(NETWORK, counted.waitMs);
      const all = await countEvent(app, projectId, everywhere, [ACCOUNT]);
      if ('waitMs' in all && !(await isKnown(network))) throw refusal(ACCOUNT, all.waitMs);
    },
    async admit() {
      await rejectEverywhere();
      // Few users have failures, so most are admitted with one read.
      if (!(await rejectHere())) return;
      const waitMs = await forgetEvents(app, here, NETWORK);
      if (waitMs > 0) throw refusal(NETWORK, waitMs);
    },
    async guessFactor(compare) {
      const guessed = await countEvent(app, projectId, here, [NETWORK]);
      if ('waitMs' in guessed) throw refusal(NETWORK, guessed.waitMs);
      const guess = await countEvent(app, projectId, factor, [FACTOR]);
      if ('waitMs' in guess) throw refusal(FACTOR, guess.waitMs);
      if (!(await compare())) return false;
      await Promise.all([clearCounters(app, [here]), takeBack(app, guess)]);
      return true;
    },
    clear: () => clearCounters(app, [here, everywhere]),
  };
}

const refusal = ({ message }: Lock, waitMs: number): Error =>
  locked('ACCOUNT_LOCKED', message, { retryAfterSeconds: waitMs / 1000 });
