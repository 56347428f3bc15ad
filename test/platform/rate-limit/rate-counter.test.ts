import { afterEach, describe, expect, it, vi } from 'vitest';
import { openEngine } from '../../../src/engine/index.js';
import type { Database } from '../../../src/platform/database/database.js';
import { openLogger } from '../../../src/platform/observe/logger.js';
import { openDatabaseCounter, windowStore } from '../../../src/platform/rate-limit/database-counter.js';
import { openInsuredCounter } from '../../../src/platform/rate-limit/insured-counter.js';
import { openMemoryCounter } from '../../../src/platform/rate-limit/memory-counter.js';
import type { RateCounter } from '../../../src/platform/rate-limit/rate-counter.js';
import { openSavedCounter } from '../../../src/platform/rate-limit/saved-counter.js';
import { createFakeClock, type FakeClock } from '../../helpers/fake-clock.js';
import { eventually } from '../../helpers/eventually.js';
import { openTempDir } from '../../helpers/temp-dir.js';

const TEN = { count: 10, windowMs: 60_000 };
const log = openLogger({ level: 'silent', format: 'json' });
const cleanUps: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const cleanUp of cleanUps.splice(0).reverse()) await cleanUp();
});

async function openTestDatabase(): Promise<Database> {
  const dir = await openTempDir();
  const engine = openEngine({ dataDir: dir.path, durability: 'relaxed' });
  cleanUps.push(dir.remove, () => engine.close());
  const db = engine.db('test');
  return { kind: 'embedded', collection: (name: string) => db.collection(name) } as Database;
}

const COUNTERS: Record<string, (clock: FakeClock) => Promise<RateCounter>> = {
  memory: (clock) => Promise.resolve(openMemoryCounter(clock)),
  'memory, saved': async (clock) => openSavedCounter(await openTestDatabase(), clock, log),
  database: async (clock) => openDatabaseCounter(await openTestDatabase(), clock),
};

describe.each(Object.entries(COUNTERS))('a counter in the %s', (_name, open) => {
  const start = async (): Promise<{ counter: RateCounter; clock: FakeClock }> => {
    const clock = createFakeClock();
    const counter = await open(clock);
    cleanUps.push(() => counter.close());
    return { counter, clock };
  };

  it('grants what is left and no more', async () => {
    const { counter, clock } = await start();
    const resetMs = clock.now() + 60_000;
    expect(await counter.take('a', 4, TEN)).toEqual({ granted: 4, left: 6, resetMs });
    expect(await counter.take('a', 9, TEN)).toEqual({ granted: 6, left: 0, resetMs });
    expect(await counter.take('a', 1, TEN)).toEqual({ granted: 0, left: 0, resetMs });
  });

  it('keeps keys apart', async () => {
    const { counter } = await start();
    await counter.take('a', 10, TEN);
    expect(await counter.take('b', 1, TEN)).toMatchObject({ granted: 1, left: 9 });
  });

  it('begins a window with the first use and anew when it is over', async () => {
    const { counter, clock } = await start();
    const { resetMs } = await counter.take('a', 10, TEN);
    clock.advance(59_999);
    expect(await counter.take('a', 1, TEN)).toMatchObject({ granted: 0, resetMs });
    clock.advance(1);
    expect(await counter.take('a', 1, TEN)).toEqual({ granted: 1, left: 9, resetMs: resetMs + 60_000 });
  });

  it('goes on with a window that somebody has begun whose clock is a little ahead', async () => {
    const { counter, clock } = await start();
    expect(await counter.take('a', 8, TEN)).toMatchObject({ granted: 8 });
    clock.advance(-50);
    expect(await counter.take('a', 8, TEN)).toMatchObject({ granted: 2 });
    clock.advance(-60_000);
    expect(await counter.take('a', 1, TEN)).toMatchObject({ granted: 0 });
  });

  it('never locks anybody out for longer than a window after the clock was set back', async () => {
    const { counter, clock } = await start();
    await counter.take('a', 10, TEN);
    clock.advance(-86_400_000);
    expect(await counter.take('a', 1, TEN)).toEqual({ granted: 1, left: 9, resetMs: clock.now() + 60_000 });
  });

  it('takes back what was not needed, unless the window is another one by now', async () => {
    const { counter, clock } = await start();
    const { resetMs } = await counter.take('a', 10, TEN);
    await counter.giveBack('a', 3, resetMs);
    expect(await counter.take('a', 10, TEN)).toMatchObject({ granted: 3 });
    clock.advance(60_000);
    await counter.take('a', 10, TEN);
    await counter.giveBack('a', 3, resetMs);
    expect(await counter.take('a', 10, TEN)).toMatchObject({ granted: 0 });
  });

  it('follows a limit that was changed in the middle of a window', async () => {
    const { counter } = await start();
    await counter.take('a', 10, TEN);
    expect(await counter.take('a', 5, { ...TEN, count: 12 })).toMatchObject({ granted: 2, left: 0 });
    expect(await counter.take('a', 5, { ...TEN, count: 3 })).toMatchObject({ granted: 0, left: 0 });
  });

  it('counts at least what is known from elsewhere, in the window that is known there', async () => {
    const { counter, clock } = await start();
    const resetMs = clock.now() + 30_000;
    await counter.atLeast([
      { key: 'new', used: 7, resetMs },
      { key: 'over', used: 7, resetMs: clock.now() - 1 },
    ]);
    expect(await counter.take('new', 10, TEN)).toEqual({ granted: 3, left: 0, resetMs });
    expect(await counter.take('over', 4, TEN)).toMatchObject({ granted: 4 });
    await counter.atLeast([{ key: 'over', used: 2, resetMs }]);
    expect(await counter.take('over', 1, TEN)).toMatchObject({ granted: 1, left: 5 });
    await counter.atLeast([{ key: 'over', used: 9, resetMs }]);
    expect(await counter.take('over', 10, TEN)).toMatchObject({ granted: 1, left: 0, resetMs: clock.now() + 60_000 });
    clock.advance(60_000);
    await counter.atLeast([{ key: 'over', used: 9, resetMs }]);
    expect(await counter.take('over', 10, TEN)).toMatchObject({ granted: 10 });
  });

  it('grants exactly the limit to a hundred that take at once', async () => {
    const { counter } = await start();
    const grants = await Promise.all(Array.from({ length: 100 }, async () => counter.take('a', 1, TEN)));
    expect(grants.filter(({ granted }) => granted === 1)).toHaveLength(10);
  });
});

describe('a saved counter', () => {
  it('does not set abusers free when the process ends', async () => {
    const db = await openTestDatabase();
    const clock = createFakeClock();
    const first = openSavedCounter(db, clock, log);
    const { resetMs } = await first.take('greedy', 9, TEN);
    await first.take('modest', 2, TEN);
    await first.close();
    const second = openSavedCounter(db, clock, log);
    expect(await second.take('greedy', 5, TEN)).toEqual({ granted: 1, left: 0, resetMs });
    expect(await second.take('modest', 1, TEN)).toMatchObject({ left: 9 });
    await second.close();
  });

  it('keeps what is counted while it begins and ends', async () => {
    const db = await openTestDatabase();
    const counter = openSavedCounter(db, createFakeClock(), log);
    const taking = counter.take('greedy', 9, TEN);
    await counter.close();
    await taking;
    expect(await windowStore(db).countDocuments()).toBe(1);
  });

  it('writes nothing for those who stay well below the limit', async () => {
    const db = await openTestDatabase();
    const counter = openSavedCounter(db, createFakeClock(), log);
    for (let client = 0; client < 50; client++) await counter.take(`client ${client}`, 4, TEN);
    await counter.close();
    expect(await windowStore(db).countDocuments()).toBe(0);
  });
});

describe('an insured counter', () => {
  it('counts elsewhere while the counter is away', async () => {
    const clock = createFakeClock();
    const away: RateCounter = {
      take: () => Promise.reject(new Error('connection lost')),
      giveBack: () => Promise.reject(new Error('connection lost')),
      atLeast: () => Promise.reject(new Error('connection lost')),
      close: () => Promise.resolve(),
    };
    const counter = openInsuredCounter(away, openMemoryCounter(clock), clock, log);
    cleanUps.push(() => counter.close());
    const grants = [];
    for (let use = 0; use < 20; use++) grants.push(await counter.take('a', 1, TEN));
    expect(grants.filter(({ granted }) => granted === 1)).toHaveLength(10);
    await counter.giveBack('a', 1, grants[0]!.resetMs);
    expect(await counter.take('a', 2, TEN)).toMatchObject({ granted: 1 });
  });
});

describe('an insured counter while the main one goes and comes back', () => {
  it('takes its counts along, there and back', async () => {
    const clock = createFakeClock();
    let main = openMemoryCounter(clock);
    let isThere = true;
    const ask = <T>(work: () => T): Promise<T> =>
      isThere ? Promise.resolve(work()) : Promise.reject(new Error('connection lost'));
    const far: RateCounter = {
      take: (...take) => ask(() => main.take(...take)),
      giveBack: (...back) => ask(() => main.giveBack(...back)),
      atLeast: (windows) => ask(() => main.atLeast(windows)),
      close: () => main.close(),
    };
    let nowMs = 0;
    const performanceNow = vi.spyOn(performance, 'now').mockImplementation(() => nowMs);
    const counter = openInsuredCounter(far, openMemoryCounter(clock), clock, log);
    cleanUps.push(() => counter.close());
    let passed = 0;
    const take = async (uses: number): Promise<void> => void (passed += (await counter.take('a', uses, TEN)).granted);
    for (let outage = 0; outage < 3; outage++) {
      await take(2);
      isThere = false;
      await take(1);
      // It comes back empty.
      await main.close();
      main = openMemoryCounter(clock);
      isThere = true;
      nowMs += 1_000;
    }
    await take(10);
    expect(passed).toBe(10);
    performanceNow.mockRestore();
  });
});

describe('an insured counter whose main one hangs', () => {
  afterEach(() => vi.restoreAllMocks());

  it('lets one request a second find out whether it is back, and no other wait for that', async () => {
    let nowMs = 0;
    vi.spyOn(performance, 'now').mockImplementation(() => nowMs);
    const asked: (() => void)[] = [];
    const hanging: RateCounter = {
      take: () => new Promise((_, reject) => asked.push(() => reject(new Error('no answer')))),
      giveBack: () => undefined,
      atLeast: () => undefined,
      close: () => Promise.resolve(),
    };
    const clock = createFakeClock();
    const counter = openInsuredCounter(hanging, openMemoryCounter(clock), clock, log);
    cleanUps.push(() => counter.close());
    for (let outage = 1; outage <= 3; outage++) {
      const asking = counter.take('a', 1, TEN);
      await eventually('it asks', () => asked.length === outage);
      if (outage > 1) expect(await counter.take('a', 1, TEN)).toMatchObject({ granted: 1 });
      expect(asked).toHaveLength(outage);
      asked.at(-1)!();
      expect(await asking).toMatchObject({ granted: 1 });
      nowMs += 1_000;
    }
  });
});

describe('a counter in memory', () => {
  it('forgets the oldest windows first when there are too many', () => {
    const counter = openMemoryCounter(createFakeClock(), 3);
    cleanUps.push(() => counter.close());
    for (const key of ['a', 'b', 'c', 'd']) counter.take(key, 10, TEN);
    expect(counter.take('d', 1, TEN).granted).toBe(0);
    expect(counter.take('b', 1, TEN).granted).toBe(0);
    expect(counter.take('a', 1, TEN).granted).toBe(1);
  });
});
