import { availableParallelism } from 'node:os';
import { unavailable } from '../../errors.js';
import { passwordForm } from '../schema/text-forms.js';
import { FairLimiter } from '../../fair-limiter.js';
import { bcryptCostOf, isFirebaseScrypt, matchesFirebaseHash } from './firebase-scrypt.js';

export interface PasswordLimits {
  concurrency: number;
  maxWaiting: number;
  maxWaitingPerTenant: number;
}

/** The slow work on passwords, off the event loop, within a turn. */
export interface PasswordWork {
  hash(password: string): Promise<string>;
  /**
   * With null for a hash that does not exist it does the same work and answers false; so it does for a wrong password
   * to a hash of a lower cost. Hashes are of bcrypt, or as `storeFirebaseHash` made them.
   */
  matches(password: string, hash: string | null): Promise<boolean>;
  /** True for a hash made with another cost than the configured one, or not by bcrypt. */
  isOutdated(hash: string): boolean;
}

/**
 * The queue for bcrypt: few turns at once, waiting ones served tenant by tenant, so that one project's logins delay
 * neither another's nor other requests.
 */
export interface Passwords {
  /**
   * Runs `work` when it is its turn. 503 BUSY with Retry-After when too many wait already; gives its place up when
   * `gone` aborts before.
   */
  inTurn<T>(tenant: string, work: (bcrypt: PasswordWork) => Promise<T>, gone?: AbortSignal): Promise<T>;
}

/** Leaves one processor to the event loop, and one of libuv's four threads to files and names. */
function defaultLimits(): PasswordLimits {
  const concurrency = Math.max(1, Math.min(availableParallelism() - 1, 3));
  return { concurrency, maxWaiting: 200, maxWaitingPerTenant: 100 };
}

// Any well-formed hash does: what counts is that comparing with it costs what its cost says. No password is known to
// fit it.
const NO_HASH_SALT_AND_DIGEST = 'N9qo8uLOickgx2ZMRZoMyeDkH9cyrGmkQRh9b5IzP7vRz1nBVgmiC';
const noHash = (cost: number): string => `$2b$${String(cost).padStart(2, '0')}$${NO_HASH_SALT_AND_DIGEST}`;
const costOf = (hash: string): number => (isFirebaseScrypt(hash) ? bcryptCostOf(hash) : Number(hash.split('$')[2]));

export function openPasswords(cost: number, limits: PasswordLimits = defaultLimits()): Passwords {
  let averageMs = 2 ** (cost - 10) * 60;
  const queue = new FairLimiter({
    shares: { all: limits.concurrency },
    waiting: { all: limits.maxWaiting, project: limits.maxWaitingPerTenant },
    refuse: (_, waiting) =>
      unavailable('BUSY', 'Too many concurrent sign-ins. Try again in a moment', {
        retryAfterSeconds: Math.max(1, (waiting * averageMs) / limits.concurrency / 1000),
      }),
  });

  // Loaded on first use: most commands never need the native module.
  const load = () => import('bcrypt').then((module) => module.default);
  const work: PasswordWork = {
    hash: async (password) => (await load()).hash(passwordForm(password), cost),
    matches: async (password, hash) => {
      const bcrypt = await load();
      const compare = hash !== null && isFirebaseScrypt(hash) ? matchesFirebaseHash : bcrypt.compare;
      // As typed too: hashes of other services are made of that.
      for (const form of new Set([passwordForm(password), password])) {
        if (await compare(form, hash ?? noHash(cost))) return hash !== null;
        // Each step of cost is twice the work: these together are what lacks to the configured one.
        for (let lower = costOf(hash ?? noHash(cost)); lower < cost; lower++) await bcrypt.compare(form, noHash(lower));
      }
      return false;
    },
    isOutdated: (hash) => isFirebaseScrypt(hash) || costOf(hash) !== cost,
  };

  return {
    inTurn: (tenant, run, gone) =>
      queue.run(
        { project: tenant, address: '' },
        async () => {
          const started = performance.now();
          try {
            return await run(work);
          } finally {
            averageMs += (performance.now() - started - averageMs) / 20;
          }
        },
        gone,
      ),
  };
}
