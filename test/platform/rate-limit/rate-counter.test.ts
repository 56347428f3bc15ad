import { afterEach, describe, expect, it, vi } from 'vitest';
import { openLogger } from '../../../src/platform/observe/logger.js';
import { openFallbackCounter } from '../../../src/platform/rate-limit/open-limits.js';
import { openMemoryCounter, type Grant, type RateCounter } from '../../../src/platform/rate-limit/memory-counter.js';
import { createFakeClock, type FakeClock } from '../../helpers/fake-clock.js';
import { eventually } from '../../helpers/eventually.js';

const TEN = { count: 10, windowMs: 60_000 };
const log = openLogger({ level: 'silent', format: 'json' });
const cleanUps: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const cleanUp of cleanUps.splice(0).reverse()) await cleanUp();
});

describe('a counter in memory', () => {
  const start = (): { counter: RateCounter; clock: FakeClock } => {
    const clock = createFakeClock();
    const counter = openMemoryCounter(clock);
    cleanUps.push(() => counter.close());
    return { counter, clock };
  };

  it('grants what is left and no more', async () => {
    const { counter, clock } = start();
    const resetMs = clock.now() + 60_000;
    expect(await counter.take('a', 4, TEN)).toEqual({ granted: 4, left: 6, resetMs });
    expect(await counter.take('a', 9, TEN)).toEqual({ granted: 6, left: 0, resetMs });
    expect(await counter.take('a', 1, TEN)).toEqual({ granted: 0, left: 0, resetMs });
  });

  it('keeps keys apart', async () => {
    const { counter } = start();
    await counter.take('a', 10, TEN);
    expect(await counter.take('b', 1, TEN)).toMatchObject({ granted: 1, left: 9 });
  });

  it('begins a window with the first use and anew when it is over', async () => {
    const { counter, clock } = start();
    const { resetMs } = await counter.take('a', 10, TEN);
    clock.advance(59_999);
    expect(await counter.take('a', 1, TEN)).toMatchObject({ granted: 0, resetMs });
    clock.advance(1);
    expect(await counter.take('a', 1, TEN)).toEqual({ granted: 1, left: 9, resetMs: resetMs + 60_000 });
  });

  it('goes on with a window that somebody has begun whose clock is a little ahead', async () => {
    const { counter, clock } = start();
    expect(await counter.take('a', 8, TEN)).toMatchObject({ granted: 8 });
    clock.advance(-50);
    expect(await counter.take('a', 8, TEN)).toMatchObject({ granted: 2 });
    clock.advance(-60_000);
    expect(await counter.take('a', 1, TEN)).toMatchObject({ granted: 0 });
  });

  it('never locks anybody out for longer than a window after the clock was set back', async () => {
    const { counter, clock } = start();
    await counter.take('a', 10, TEN);
    clock.advance(-86_400_000);
    expect(await counter.take('a', 1, TEN)).toEqual({ granted: 1, left: 9, resetMs: clock.now() + 60_000 });
  });

  it('takes back what was not needed, unless the window is another one by now', async () => {
    const { counter, clock } = start();
    const { resetMs } = await counter.take('a', 10, TEN);
    await counter.giveBack('a', 3, resetMs);
    expect(await counter.take('a', 10, TEN)).toMatchObject({ granted: 3 });
    clock.advance(60_000);
    await counter.take('a', 10, TEN);
    await counter.giveBack('a', 3, resetMs);
    expect(await counter.take('a', 10, TEN)).toMatchObject({ granted: 0 });
  });

  it('follows a limit that was changed in the middle of a window', async () => {
    const { counter } = start();
    await counter.take('a', 10, TEN);
    expect(await counter.take('a', 5, { ...TEN, count: 12 })).toMatchObject({ granted: 2, left: 0 });
    expect(await counter.take('a', 5, { ...TEN, count: 3 })).toMatchObject({ granted: 0, left: 0 });
  });

  it('grants exactly the limit to a hundred that take at once', async () => {
    const { counter } = start();
    const grants = await Promise.all(Array.from({ length: 100 }, async () => counter.take('a', 1, TEN)));
    expect(grants.filter(({ granted }) => granted === 1)).toHaveLength(10);
  });
});

describe('a counter with a fallback', () => {
  afterEach(() => vi.restoreAllMocks());

  /** One whose answers the test gives, or lets fail. */
  function openRemote(clock: FakeClock) {
    const asked: (() => void)[] = [];
    const memory = openMemoryCounter(clock);
    const remote = {
      state: 'up' as 'up' | 'down' | 'hanging',
      take(...take: Parameters<RateCounter['take']>): Promise<Grant> {
        if (remote.state === 'up') return Promise.resolve(memory.take(...take));
        if (remote.state === 'down') return Promise.reject(new Error('connection lost'));
        return new Promise((_, reject) => asked.push(() => reject(new Error('no answer'))));
      },
      giveBack: (...back: Parameters<RateCounter['giveBack']>) => memory.giveBack(...back),
      close: () => memory.close(),
    };
    return { remote, asked };
  }

  it('counts in this process while the other is away, and goes on there when it is back', async () => {
    let nowMs = 0;
    vi.spyOn(performance, 'now').mockImplementation(() => nowMs);
    const clock = createFakeClock();
    const { remote } = openRemote(clock);
    const counter = openFallbackCounter(remote, clock, log);
    cleanUps.push(() => counter.close());
    expect(await counter.take('a', 7, TEN)).toMatchObject({ granted: 7 });
    remote.state = 'down';
    clock.advance(1);
    const away = await counter.take('a', 8, TEN);
    expect(away).toMatchObject({ granted: 8 });
    expect(await counter.take('a', 8, TEN)).toMatchObject({ granted: 2, left: 0 });
    await counter.giveBack('a', 3, away.resetMs);
    expect(await counter.take('a', 8, TEN)).toMatchObject({ granted: 3, left: 0 });
    remote.state = 'up';
    nowMs += 1_000;
    expect(await counter.take('a', 8, TEN)).toMatchObject({ granted: 3, left: 0 });
  });

  it('lets one request a second find out whether it is back, and no other wait for that', async () => {
    let nowMs = 0;
    vi.spyOn(performance, 'now').mockImplementation(() => nowMs);
    const clock = createFakeClock();
    const { remote, asked } = openRemote(clock);
    remote.state = 'hanging';
    const counter = openFallbackCounter(remote, clock, log);
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

describe('a full counter in memory', () => {
  it('forgets the oldest windows first when there are too many', () => {
    const counter = openMemoryCounter(createFakeClock(), 3);
    cleanUps.push(() => counter.close());
    for (const key of ['a', 'b', 'c', 'd']) counter.take(key, 10, TEN);
    expect(counter.take('d', 1, TEN).granted).toBe(0);
    expect(counter.take('b', 1, TEN).granted).toBe(0);
    expect(counter.take('a', 1, TEN).granted).toBe(1);
  });
});
