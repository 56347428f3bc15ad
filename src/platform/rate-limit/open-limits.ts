import type { Clock } from '../time/clock.js';
import type { Logger } from '../observe/logger.js';
import { openRedisCounter } from './redis-counter.js';
import type { RedisConnection } from '../redis/redis.js';
import type { ProcessGroup } from '../processes/group-member.js';
import { openFallbackCounter } from './fallback-counter.js';
import { openGroupCounter } from './group-counter.js';
import { openMemoryCounter, type RateCounter } from './memory-counter.js';
import { openLocalRateLimiter, openRateLimiter, type RateLimiter } from './rate-limiter.js';

export interface RateLimits extends RateLimiter {
  /** The counter of this process, for those it supervises. */
  counter: RateCounter;
}

export interface CounterPlaces {
  clock: Clock;
  log: Logger;
  redis: RedisConnection | null;
  processGroup: ProcessGroup | null;
}

/**
 * Counts in Redis, for all machines that share it; without one in the memory of the process that serves, or that
 * supervises the serving processes of this machine (decision 45).
 */
export function openLimits({ clock, log, redis, processGroup }: CounterPlaces): RateLimits {
  const shared = redis ? openRedisCounter(redis, clock) : processGroup && openGroupCounter(processGroup);
  if (!shared) {
    const counter = openMemoryCounter(clock);
    return { ...openLocalRateLimiter(counter), counter };
  }
  const counter = openFallbackCounter(shared, clock, log);
  return { ...openRateLimiter(counter, clock), counter };
}
