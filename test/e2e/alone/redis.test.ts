import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { type App, loadConfig, migrate, openApp, openLogger, systemClock } from '../../world/app.js';
import { setChanges } from '../../world/collections.js';
import { openEngine } from '../../world/engine.js';
import { checkHealth } from '../../../src/features/health/health-routes.js';
import { buildCollection, buildProject } from '../../helpers/build-project.js';
import { openStreamClient } from '../../helpers/event-stream.js';
import { eventually } from '../../helpers/eventually.js';
import { openTestApp, type TestApp } from '../../helpers/open-test-app.js';
import { hasRedis, startRedis, type RedisServer } from '../../helpers/redis-server.js';
import { openTempDir, type TempDir } from '../../helpers/temp-dir.js';
import { cacheRegion } from '../../../src/platform/cache.js';

const THINGS = cacheRegion('things');
const OTHERS = cacheRegion('others');
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

/** How often a machine has given up on Redis: a busy one does so by itself when an answer takes too long. */
let misses = 0;

/** An application as another machine has it: same data, same Redis. */
async function openMachine(): Promise<App> {
  const values = { BSVC_DATA_DIR: dir.path, REDIS_URL: redis.url, BSVC_DURABILITY: 'relaxed' };
  const { config } = loadConfig([{ source: 'test', values }]);
  const log = openLogger({ level: 'silent', format: 'json' });
  log.warn = (_: unknown, text?: string) => void (text?.includes('this process counts alone') && misses++);
  const app = await openApp(config, log, systemClock);
  await migrate(app.db);
  cleanUps.push(() => app.close());
  return app;
}

/**
 * What comes of counting by a key of its own, while Redis is missed no more often than the work itself brings about:
 * once for each machine and outage. Repeated when it was.
 */
async function undisturbed<T>(outages: number, count: (key: string) => Promise<T>): Promise<T> {
  for (let n = 1; ; n++) {
    const before = misses;
    const counted = await count(`client ${n}`);
    if (misses - before <= outages || n === 5) return counted;
  }
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
    expect(await undisturbed(0, (key) => allowed(machines, key, 100))).toBe(10);
    await eventually('it is connected', async () => (await cacheHealth(machines[0]!)) === 'connected');
  });

  it('begin a window anew when it is over, and take back what was not needed', async () => {
    const { counter } = (await openMachine()).limits;
    const { resetMs } = await counter.take('client', 8, TEN);
    await counter.giveBack('client', 3, resetMs);
    expect(await counter.take('client', 8, TEN)).toMatchObject({ granted: 5, left: 0 });
    const short = { count: 10, windowMs: 200 };
    await counter.take('another', 10, short);
    await eventually('a new window', async () => (await counter.take('another', 1, short)).granted === 1);
  });

  it('drop at once what another one has changed', async () => {
    const [here, there] = [await openMachine(), await openMachine()];
    await eventually('news arrive', () => {
      here.cache.keep(THINGS, 'a', { old: true });
      here.cache.keep(OTHERS, 'b', { old: true });
      there.cache.forget(THINGS, 'a');
      there.cache.forgetAll(OTHERS);
      return new Promise((resolve) => setImmediate(resolve)).then(
        () => !here.cache.peek(THINGS, 'a') && !here.cache.peek(OTHERS, 'b'),
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
    machines[1]!.cache.forgetAll(THINGS);
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

/** Of those who wait for hints at a machine nobody looks without one but when the test says so. */
function holdLooks({ hints }: App): { look(): void } {
  const wait = hints.wait.bind(hints);
  let now = new AbortController();
  vi.spyOn(hints, 'wait').mockImplementation((topic, _ms, signal) =>
    wait(topic, 2 ** 30, AbortSignal.any([now.signal, ...(signal ? [signal] : [])])),
  );
  return {
    look() {
      now.abort();
      now = new AbortController();
    },
  };
}

describe.skipIf(!hasRedis)('a stream at one machine and writes at another', () => {
  /** Two machines with one database: the embedded one, or one that a driver reaches. */
  async function openTwo(transport: string): Promise<[TestApp, TestApp]> {
    const settings: Record<string, string> = { REDIS_URL: redis.url };
    if (transport === 'embedded') {
      settings.BSVC_DATA_DIR = dir.path;
    } else {
      const engine = openEngine({ dataDir: join(dir.path, 'wire'), durability: 'relaxed' });
      cleanUps.push(() => engine.close());
      settings.MONGODB_URI = (await engine.listen('127.0.0.1:0')).uri;
      settings.BSVC_SECRET_KEY = 'a-master-key-for-tests-only-0123456789';
    }
    const open = async (): Promise<TestApp> => {
      const machine = await openTestApp({ settings });
      cleanUps.push(machine.close);
      return machine;
    };
    return [await open(), await open()];
  }

  it.each(['embedded', 'wire'])(
    'Redis tells at once, and what it loses is found by the next look (%s)',
    async (transport) => {
      const [here, there] = await openTwo(transport);
      const owner = await buildProject(here.app);
      await buildCollection(here.app, owner.project, { name: 'notes' });
      await setChanges(here.app, owner.project._id, 'notes', { on: true });
      const headers = { 'x-api-key': owner.secret, 'content-type': 'application/json' };
      const write = async (n: number): Promise<string> => {
        const init = { method: 'POST', headers, body: JSON.stringify({ n }) };
        return ((await (await fetch(`${here.url}/api/data/notes`, init)).json()) as { _id: string })._id;
      };
      const looks = holdLooks(there.app);
      const subscriptions = [{ collection: 'notes', since: 'now' }];
      const client = await openStreamClient(there, { headers: { 'x-api-key': owner.secret }, body: { subscriptions } });
      cleanUps.push(async () => client.close());
      await client.until(({ event }) => event === 'ready');

      // Until they hear each other.
      await eventually('the first is told', async () => (await write(0)) && client.known().size > 0);
      for (let n = 1; n <= 20; n++) {
        const id = await write(n);
        await client.until(({ data }) => data.id === id);
      }

      await redis.kill();
      const lost = await write(21);
      await eventually('what nobody told of is found', () => {
        looks.look();
        return client.known().has(lost);
      });
      await redis.restart();
      for (const { app } of [here, there])
        await eventually('Redis is back', async () => (await cacheHealth(app)) === 'connected');
      const before = client.known().size;
      await eventually('they hear each other again', async () => (await write(22)) && client.known().size > before);
    },
  );
});
