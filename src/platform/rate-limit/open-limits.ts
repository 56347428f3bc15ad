import type { Clock } from '../time/clock.js';
import type { Database } from '../database/database.js';
import type { Logger } from '../observe/logger.js';
import { openRedisCounter } from './redis-counter.js';
import type { RedisConnection } from '../redis/redis.js';
import type { ProcessGroup } from '../processes/group-member.js';
import { openDatabaseCounter } from './database-counter.js';
import { openGroupCounter } from './group-counter.js';
import { openInsuredCounter, type WatchedCounter } from './insured-counter.js';
import { openMemoryCounter } from './memory-counter.js';
import type { RateCounter } from './rate-counter.js';
import { openLocalRateLimiter, openRateLimiter, type RateLimiter } from './rate-limiter.js';
import { openSavedCounter } from './saved-counter.js';

export interface RateLimits extends RateLimiter {
  /** The counter of this process, for those it supervises. */
  counter: RateCounter;
}

export interface CounterPlaces {
  db: Database;
  clock: Clock;
  log: Logger;
  redis: RedisConnection | null;
  processGroup: ProcessGroup | null;
}

/**
 * Counts where all processes that serve the same data can see it: in Redis, and in the database while that is away;
 * else in a MongoDB; else in the one process that serves an embedded store or supervises those that do.
 */
export function openLimits({ db, clock, log, redis, processGroup }: CounterPlaces): RateLimits {
  const isAlone = db.kind === 'embedded' && !processGroup;
  if (isAlone && !redis) {
    const counter = openSavedCounter(db, clock, log);
    return { ...openLocalRateLimiter(counter), counter };
  }
  const insured = (main: RateCounter | WatchedCounter, insurance: RateCounter): RateCounter =>
    openInsuredCounter(main, insurance, clock, log);
  // Beside Redis the database, of either kind: all who count in the one can count in the other.
  const isOfProcessGroup = db.kind === 'embedded' && processGroup && !redis;
  const own = insured(
    isOfProcessGroup ? openGroupCounter(processGroup) : openDatabaseCounter(db, clock),
    openMemoryCounter(clock),
  );
  const counter = redis ? insured(openRedisCounter(redis, clock), own) : own;
  return { ...openRateLimiter(counter, clock), counter };
}
