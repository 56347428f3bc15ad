import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { openApp, type App } from '../../src/app.js';
import { loadConfig } from '../../src/config.js';
import { migrate } from '../../src/migrations/migrate.js';
import { systemClock } from '../../src/platform/clock.js';
import { openLogger } from '../../src/platform/logger.js';
import { checkHealth } from '../../src/features/health/check-health.js';
import { eventually } from '../helpers/eventually.js';
import { hasRedis, startRedis, type RedisServer } from '../helpers/redis-server.js';
import { openTempDir, type TempDir } from '../helpers/temp-dir.js';

const TEN = { count: 10, windowMs: 60_000 };
const cleanUps: (() => Promise<unknown>)[] = [];
let redis: RedisServer;
let dir: TempDir;
beforeEach(async () => {
  if (!hasRedis) return;
  redis = await startRedis();
  dir = await openTempDir();
  cleanUps.push(dir.remove, redis.kill);
});
afterEach(async () => {
  for (const cleanUp of cleanUps.splice(0).reverse()) await cleanUp();
});

/** An application as another machine has it: same data, same Redis. */
async function openMachine(): Promise<App> {
  const values = { BSVC_DATA_DIR: dir.path, REDIS_URL: redis.url, BSVC_DURABILITY: 'relaxed' };
  const { config } = loadConfig([{ source: 'test', values }]);
  const app = await openApp(config, openLogger({ level: 'silent', format: 'json' }), systemClock);
  await migrate(app.db);
  cleanUps.push(() => app.close());
  return app;
}

const cacheHealth = async (app: App): Promise<string> => (await checkHealth(app)).dependencies.cache;
const allowed = async (machines: App[], key: string, uses: number): Promise<number> => {
  const verdicts = await Promise.all(
    Array.from({ length: uses }, async (_, at) => machines[at % machines.length]!.limits.consume(key, TEN)),
  );
  return verdicts.filter((verdict) => verdict.allowed).length;
};

// Needs a `redis-server` on the PATH (Debian package redis-server).
describe.skipIf(!hasRedis)('machines with one Redis', () => {
  it('count limits together, exactly, and say that it is connected', async () => {
    const machines = [await openMachine(), await openMachine(), await openMachine(), await openMachine()];
    expect(await allowed(machines, 'client', 100)).toBe(10);
    expect(await cacheHealth(machines[0]!)).toBe('connected');
  });

  it('begin a window anew when it is over, and take back what was not needed', async () => {
    const { counter } = (await openMachine()).limits;
    const short = { count: 10, windowMs: 200 };
    const { resetMs } = await counter.take('client', 8, short);
    await counter.giveBack('client', 3, resetMs);
    expect(await counter.take('client', 8, short)).toMatchObject({ granted: 5, left: 0 });
    await eventually('a new window', async () => (await counter.take('client', 1, short)).granted === 1);
  });

  it('drop at once what another one has changed', async () => {
    const [here, there] = [await openMachine(), await openMachine()];
    await eventually('news arrive', () => {
      here.cache.keep('things', 'a', { old: true });
      here.cache.keep('others', 'b', { old: true });
      there.cache.forget('things', 'a');
      there.cache.forgetAll('others');
      return new Promise((resolve) => setImmediate(resolve)).then(
        () => !here.cache.peek('things', 'a') && !here.cache.peek('others', 'b'),
      );
    });
  });

  it('wake each other’s workers', async () => {
    const [here, there] = [await openMachine(), await openMachine()];
    let woken = 0;
    here.jobs.onWake(() => woken++);
    await eventually('the other one is woken', () => {
      there.jobs.wake();
      return woken > 0;
    });
  });

  it('go on when it dies, tell so, and come back to it by themselves', async () => {
    const machines = [await openMachine(), await openMachine()];
    expect(await allowed(machines, 'before', 30)).toBe(10);
    await redis.kill();
    await eventually('it is noticed', async () => (await cacheHealth(machines[0]!)) === 'disconnected');
    // Each counts for itself meanwhile.
    expect(await allowed([machines[0]!], 'meanwhile', 30)).toBe(10);
    machines[1]!.cache.forgetAll('things');
    machines[1]!.jobs.wake();
    await redis.restart();
    for (const machine of machines) {
      await eventually('it is back', async () => (await cacheHealth(machine)) === 'connected');
    }
    let fresh = 0;
    await eventually('they count together again', async () => (await allowed(machines, `after ${++fresh}`, 40)) === 10);
    let woken = 0;
    machines[0]!.jobs.onWake(() => woken++);
    await eventually('news arrive again', () => {
      machines[1]!.jobs.wake();
      return woken > 0;
    });
  });

  it('say so when it hangs, and go on', async () => {
    const machine = await openMachine();
    expect(await cacheHealth(machine)).toBe('connected');
    redis.pause();
    expect(await cacheHealth(machine)).toBe('disconnected');
    expect(await allowed([machine], 'meanwhile', 30)).toBe(10);
    redis.resume();
    await eventually('it is back', async () => (await cacheHealth(machine)) === 'connected');
  });

  it('start without it', async () => {
    await redis.kill();
    const machine = await openMachine();
    expect(await cacheHealth(machine)).toBe('disconnected');
    expect(await allowed([machine], 'client', 30)).toBe(10);
  });
});
