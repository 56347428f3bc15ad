import type { Clock } from '../time/clock.js';
import type { Logger } from '../observe/logger.js';
import { openRedisCounter } from './redis-counter.js';
import type { RedisConnection } from '../redis/redis.js';
import type { ProcessGroup } from '../processes/group-member.js';
import { openGroupCounter } from './group-counter.js';
import { openMemoryCounter, type RateCounter, type Grant } from './memory-counter.js';
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

/** The interval at which a counter that failed is asked again. */
const RECOVERY_MS = 1_000;

/**
 * Counts with `main`, which is closed with it, and in this process while `main` fails. Counts do not move between the
 * two: during an outage each process begins its windows from zero.
 */
export function openFallbackCounter(main: RateCounter, clock: Clock, log: Logger): RateCounter {
  const memory = openMemoryCounter(clock);
  let isAway = false;
  let askAtMs = 0;
  return {
    async take(key, want, rate): Promise<Grant> {
      const nowMs = performance.now();
      if (isAway && nowMs < askAtMs) return memory.take(key, want, rate);
      // While it is away a single request finds out whether it is back, which can take as long as its time limit.
      askAtMs = nowMs + RECOVERY_MS;
      try {
        const grant = await main.take(key, want, rate);
        isAway = false;
        return grant;
      } catch (error) {
        if (!isAway) log.warn({ err: error }, 'the counter of rate limits does not answer; this process counts alone');
        isAway = true;
        askAtMs = performance.now() + RECOVERY_MS;
        return memory.take(key, want, rate);
      }
    },
    async giveBack(key, uses, resetMs) {
      // The end of the window says which of the two granted them.
      memory.giveBack(key, uses, resetMs);
      await main.giveBack(key, uses, resetMs);
    },
    async close() {
      await main.close();
      await memory.close();
    },
  };
}
