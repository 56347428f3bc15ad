import type { Redis } from 'ioredis';
import type { Clock } from '../time/clock.js';
import type { RedisConnection } from '../redis/redis.js';
import type { RateCounter } from './memory-counter.js';

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
export function openRedisCounter(redis: RedisConnection, clock: Clock): RateCounter {
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
