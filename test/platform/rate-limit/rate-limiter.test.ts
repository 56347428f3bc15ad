import fc from 'fast-check';
import { afterEach, describe, expect, it } from 'vitest';
import type { Rate } from '../../../src/config/setting-readers.js';
import { openMemoryCounter, type RateCounter } from '../../../src/platform/rate-limit/memory-counter.js';
import { openRateLimiter, type RateLimiter } from '../../../src/platform/rate-limit/rate-limiter.js';
import { createFakeClock, type FakeClock } from '../../helpers/fake-clock.js';
import { eventually } from '../../helpers/eventually.js';

const open: { close(): Promise<void> }[] = [];
afterEach(async () => {
  for (const each of open.splice(0)) await each.close();
});

interface Counted extends RateCounter {
  takes: number;
}

/** A counter that answers later, as one elsewhere does. */
function remoteCounter(clock: FakeClock): Counted {
  const memory = openMemoryCounter(clock);
  const remote: Counted = {
    takes: 0,
    async take(...take) {
      remote.takes++;
      await new Promise((resolve) => setImmediate(resolve));
      return memory.take(...take);
    },
    giveBack: (...back) => Promise.resolve(memory.giveBack(...back)),
    close: () => memory.close(),
  };
  open.push(remote);
  return remote;
}

/** Limiters as several processes have them, on one counter. */
function openProcesses(count: number): { limiters: RateLimiter[]; counter: Counted; clock: FakeClock } {
  const clock = createFakeClock();
  const counter = remoteCounter(clock);
  const limiters = Array.from({ length: count }, () => openRateLimiter(counter, clock));
  open.unshift(...limiters);
  return { limiters, counter, clock };
}

const rate = (count: number): Rate => ({ count, windowMs: 60_000 });

describe('a limit shared by four processes', () => {
  it('is met exactly, however requests arrive', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.integer({ min: 1, max: 127 }),
        fc.array(fc.record({ at: fc.nat(3), together: fc.integer({ min: 1, max: 30 }) }), { maxLength: 40 }),
        async (count, arrivals) => {
          const { limiters } = openProcesses(4);
          let allowed = 0;
          let sent = 0;
          for (const { at, together } of arrivals) {
            const verdicts = await Promise.all(
              Array.from({ length: together }, async () => limiters[at]!.consume('client', rate(count))),
            );
            allowed += verdicts.filter((verdict) => verdict.allowed).length;
            sent += together;
          }
          expect(allowed).toBe(Math.min(count, sent));
        },
      ),
      { seed: 20261121, numRuns: 60 },
    );
  });

  it('is never exceeded when it is large, and costs few questions', async () => {
    const { limiters, counter } = openProcesses(4);
    let allowed = 0;
    for (let round = 0; round < 3_000; round++) {
      const verdicts = await Promise.all(limiters.map(async (limiter) => limiter.consume('client', rate(10_000))));
      allowed += verdicts.filter((verdict) => verdict.allowed).length;
    }
    expect(allowed).toBe(10_000);
    expect(counter.takes).toBeLessThan(1_000);
  });

  it('gets back what a process took from a large limit and does not need', async () => {
    const { limiters, counter } = openProcesses(2);
    await limiters[0]!.consume('client', rate(6_400));
    await eventually('what is not needed is given back', async () => {
      const { granted, resetMs } = await counter.take('client', 6_399, rate(6_400));
      if (granted === 6_399) return true;
      await counter.giveBack('client', granted, resetMs);
      return false;
    });
  });

  it('gets back at once what a process held that is closed', async () => {
    const { limiters, counter } = openProcesses(2);
    await limiters[0]!.consume('client', rate(6_400));
    await limiters[0]!.close();
    expect(await counter.take('client', 6_400, rate(6_400))).toMatchObject({ granted: 6_399 });
  });
});

describe('a process that is closed while the counter does not answer', () => {
  it('waits for it once, not once for each client', async () => {
    const clock = createFakeClock();
    const memory = remoteCounter(clock);
    const waiting: (() => void)[] = [];
    const giveBack = (): Promise<void> =>
      new Promise((resolve) => {
        waiting.push(resolve);
        if (waiting.length === 5) for (const end of waiting) end();
      });
    const limiter = openRateLimiter({ ...memory, giveBack }, clock);
    for (let client = 0; client < 5; client++) await limiter.consume(`client ${client}`, rate(6_400));
    await limiter.close();
    expect(waiting).toHaveLength(5);
  });
});

describe('a process that shares limits', () => {
  it('asks once for all requests that arrive together, and never again for who is refused', async () => {
    const { limiters, counter, clock } = openProcesses(1);
    const limiter = limiters[0]!;
    await Promise.all(Array.from({ length: 50 }, async () => limiter.consume('client', rate(20))));
    expect(counter.takes).toBeLessThanOrEqual(3);
    const before = counter.takes;
    for (let use = 0; use < 100; use++)
      expect(limiter.consumeNow('client', rate(20))).toMatchObject({ allowed: false });
    expect(counter.takes).toBe(before);
    clock.advance(60_000);
    expect(await limiter.consume('client', rate(20))).toMatchObject({ allowed: true, left: 19 });
  });

  it('passes on that the counter failed, and recovers', async () => {
    const clock = createFakeClock();
    const memory = remoteCounter(clock);
    let away = true;
    const limiter = openRateLimiter(
      { ...memory, take: (...take) => (away ? Promise.reject(new Error('away')) : memory.take(...take)) },
      clock,
    );
    open.unshift(limiter);
    await expect(limiter.consume('client', rate(5))).rejects.toThrow('away');
    away = false;
    expect(await limiter.consume('client', rate(5))).toMatchObject({ allowed: true, left: 4 });
  });
});
