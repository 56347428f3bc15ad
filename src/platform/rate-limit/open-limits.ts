import type { Clock } from '../time/clock.js';
import type { Logger } from '../observe/logger.js';
import type { RedisConnection } from '../redis/redis.js';
import type { ProcessGroup } from '../processes/group-member.js';
import { openMemoryCounter, type RateCounter, type Grant } from './memory-counter.js';
import { openLocalRateLimiter, openRateLimiter, type RateLimiter } from './rate-limiter.js';
import type { Redis } from 'ioredis';
import type { Rate } from '../../config/setting-readers.js';
import type { GroupAnswers } from '../processes/group-host.js';

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

const PREFIX = 'bsvc:rate:';

/** Time is Redis' own, so that machines need not agree on it. */
const TAKE = `
local used = tonumber(redis.call('GET', KEYS[1]) or '0')
local granted = math.max(0, math.min(tonumber(ARGV[1]), tonumber(ARGV[2]) - used))
local rest = redis.call('PTTL', KEYS[1])
if rest < 0 then
  redis.call('SET', KEYS[1], granted, 'PX', ARGV[3])
  rest = tonumber(ARGV[3])
elseif granted > 0 then
  redis.call('INCRBY', KEYS[1], granted)
end
return {granted, used + granted, rest}`;

const GIVE_BACK = `
local used = tonumber(redis.call('GET', KEYS[1]) or '0')
if used >= tonumber(ARGV[1]) then redis.call('DECRBY', KEYS[1], ARGV[1]) end
return used`;

interface CountingRedis extends Redis {
  bsvcTake(key: string, want: number, limit: number, windowMs: number): Promise<[number, number, number]>;
  bsvcGiveBack(key: string, uses: number): Promise<number>;
}

/**
 * Counts in Redis, for any number of machines: one round trip for each take, together with whatever else is asked at
 * the moment.
 */
function openRedisCounter(redis: RedisConnection, clock: Clock): RateCounter {
  const client = redis.client() as CountingRedis;
  client.defineCommand('bsvcTake', { numberOfKeys: 1, lua: TAKE });
  client.defineCommand('bsvcGiveBack', { numberOfKeys: 1, lua: GIVE_BACK });
  return {
    async take(key, want, { count, windowMs }) {
      const [granted, used, restMs] = await client.bsvcTake(PREFIX + key, want, count, windowMs);
      return { granted, left: Math.max(0, count - used), resetMs: clock.now() + restMs };
    },
    async giveBack(key, uses, resetMs) {
      if (resetMs > clock.now()) await client.bsvcGiveBack(PREFIX + key, uses);
    },
    close: () => Promise.resolve(),
  };
}

/** Counts in the process that started this one. */
function openGroupCounter(group: ProcessGroup): RateCounter {
  return {
    take: (key, want, rate) => group.ask<Grant>('take uses', { key, want, rate }),
    giveBack: (key, uses, resetMs) => group.tell('give uses back', { key, uses, resetMs }),
    close: () => Promise.resolve(),
  };
}

interface Take {
  key: string;
  want: number;
  rate: Rate;
}

interface GiveBack {
  key: string;
  uses: number;
  resetMs: number;
}

/** The same counter's side in the process that counts for the others. */
export function groupCounterAnswers(counter: RateCounter): GroupAnswers {
  return {
    'take uses'(input) {
      const { key, want, rate } = input as Take;
      return counter.take(key, want, rate);
    },
    'give uses back'(input) {
      const { key, uses, resetMs } = input as GiveBack;
      return counter.giveBack(key, uses, resetMs);
    },
  };
}
