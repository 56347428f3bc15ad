import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { cacheRegion, openCache } from '../../src/platform/cache.js';

let nowMs = 1000;
const pass = (ms: number): void => {
  nowMs += ms;
  vi.advanceTimersByTime(ms);
};
beforeEach(() => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
  vi.spyOn(performance, 'now').mockImplementation(() => nowMs);
});
afterEach(() => {
  vi.useRealTimers();
  vi.restoreAllMocks();
});

it('keeps an answer for half a second since it was asked for, however long the asking took', async () => {
  const cache = openCache({ on: () => undefined, send: () => undefined } as never);
  let loads = 0;
  const ask = (takesMs: number) =>
    cache.read(cacheRegion<{ load: number }>('keys'), 'a', async () => {
      pass(takesMs);
      return Promise.resolve({ load: ++loads });
    });
  expect(await ask(400)).toEqual({ load: 1 });
  pass(80);
  expect(await ask(0)).toEqual({ load: 1 });
  pass(40);
  expect(await ask(700)).toEqual({ load: 2 });
  // What took longer than that is told to those who waited, and to nobody else.
  expect(await ask(0)).toEqual({ load: 3 });
});

it('gives a load the value that is too old, and none that was forgotten', async () => {
  const cache = openCache({ on: () => undefined, send: () => undefined } as never);
  const region = cacheRegion<{ load: number }>('records');
  const old: unknown[] = [];
  const ask = () =>
    cache.read(region, 'a', (given) => {
      old.push(given);
      return Promise.resolve({ load: old.length });
    });
  const first = await ask();
  pass(600);
  expect(cache.peek(region, 'a')).toBeUndefined();
  await ask();
  pass(600);
  cache.forget(region, 'a');
  await ask();
  expect(old).toEqual([undefined, first, undefined]);
});
