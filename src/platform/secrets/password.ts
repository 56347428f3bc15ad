import { availableParallelism } from 'node:os';
import { unavailable } from '../../errors.js';

/** bcrypt reads no further (decisions.md 2). */
export const MAX_PASSWORD_BYTES = 72;

export interface PasswordLimits {
  /** The number of computations that run at once. */
  concurrency: number;
  /** The number of turns that may wait in all, and of one party. */
  maxWaiting: number;
  maxWaitingPerParty: number;
}

/** The slow work on passwords, off the event loop, within a turn. */
export interface PasswordWork {
  hash(password: string): Promise<string>;
  /**
   * With null for a hash that does not exist it does the same work and answers false; so it does for a wrong password
   * to a hash of a lower cost.
   */
  matches(password: string, hash: string | null): Promise<boolean>;
  /** True for a hash made with another cost than the configured one. */
  isOutdated(hash: string): boolean;
}

/**
 * The queue for bcrypt: few turns at once, waiting ones served party by party, so that one project's logins delay
 * neither another's nor other requests.
 */
export interface Passwords {
  /** Runs `work` when it is its turn. 503 BUSY with Retry-After when too many wait already. */
  inTurn<T>(party: string, work: (bcrypt: PasswordWork) => Promise<T>): Promise<T>;
}

/** Leaves one processor to the event loop, and one of libuv's four threads to files and names. */
function defaultLimits(): PasswordLimits {
  return {
    concurrency: Math.max(1, Math.min(availableParallelism() - 1, 3)),
    maxWaiting: 200,
    maxWaitingPerParty: 100,
  };
}

// Any well-formed hash does: what counts is that comparing with it costs what its cost says. No password is known to
// fit it.
const NO_HASH_SALT_AND_DIGEST = 'N9qo8uLOickgx2ZMRZoMyeDkH9cyrGmkQRh9b5IzP7vRz1nBVgmiC';
const noHash = (cost: number): string => `$2b$${String(cost).padStart(2, '0')}$${NO_HASH_SALT_AND_DIGEST}`;
const costOf = (hash: string): number => Number(hash.split('$')[2]);

export function openPasswords(cost: number, limits: PasswordLimits = defaultLimits()): Passwords {
  const waiting = new Map<string, (() => void)[]>();
  let waitingCount = 0;
  let running = 0;
  let averageMs = 2 ** (cost - 10) * 60;

  // Loaded on first use: most commands never need the native module.
  const load = () => import('bcrypt').then((module) => module.default);
  const work: PasswordWork = {
    hash: async (password) => (await load()).hash(password, cost),
    matches: async (password, hash) => {
      const bcrypt = await load();
      if (hash === null) await bcrypt.compare(password, noHash(cost));
      else if (await bcrypt.compare(password, hash)) return true;
      // Each step of cost is twice the work: these together are what lacks to the configured one.
      else for (let lower = costOf(hash); lower < cost; lower++) await bcrypt.compare(password, noHash(lower));
      return false;
    },
    isOutdated: (hash) => costOf(hash) !== cost,
  };

  const startNext = (): void => {
    const next = waiting.entries().next();
    if (next.done || running >= limits.concurrency) return;
    const [party, turns] = next.value;
    const start = turns.shift()!;
    waitingCount -= 1;
    // To the end of the line: every party gets one turn before any gets its second.
    waiting.delete(party);
    if (turns.length > 0) waiting.set(party, turns);
    start();
  };

  const turn = (party: string): Promise<void> => {
    if (running < limits.concurrency) {
      running += 1;
      return Promise.resolve();
    }
    const own = waiting.get(party) ?? [];
    if (waitingCount >= limits.maxWaiting || own.length >= limits.maxWaitingPerParty) {
      throw unavailable('BUSY', 'Too many sign-ins at once: please try again in a moment', {
        retryAfterSeconds: Math.max(1, (waitingCount * averageMs) / limits.concurrency / 1000),
      });
    }
    waitingCount += 1;
    return new Promise((resolve) => {
      own.push(() => {
        running += 1;
        resolve();
      });
      waiting.set(party, own);
    });
  };

  return {
    async inTurn(party, run) {
      await turn(party);
      const started = performance.now();
      try {
        return await run(work);
      } finally {
        running -= 1;
        averageMs += (performance.now() - started - averageMs) / 20;
        startNext();
      }
    },
  };
}
