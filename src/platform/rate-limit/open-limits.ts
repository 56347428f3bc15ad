import type { Clock } from '../clock.js';
import type { Database } from '../database.js';
import type { Logger } from '../logger.js';
import { openDatabaseCounter } from './database-counter.js';
import { openInsuredCounter } from './insured-counter.js';
import { openMemoryCounter } from './memory-counter.js';
import { openLocalRateLimiter, openRateLimiter, type RateLimiter } from './rate-limiter.js';
import { openSavedCounter } from './saved-counter.js';

/** Counts where all processes that serve the same data can see it: in a MongoDB for any number of machines, in the one process that serves an embedded store. */
export function openLimits(db: Database, clock: Clock, log: Logger): RateLimiter {
  if (db.kind === 'embedded') return openLocalRateLimiter(openSavedCounter(db, clock, log));
  const counter = openInsuredCounter(openDatabaseCounter(db, clock), openMemoryCounter(clock), log);
  return openRateLimiter(counter, clock);
}
