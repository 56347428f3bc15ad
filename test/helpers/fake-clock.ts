import type { Clock } from '../../src/platform/time/clock.js';

export interface FakeClock extends Clock {
  advance(ms: number): void;
}

/** A clock that stands still until it is moved. */
export function createFakeClock(startMs = Date.parse('2026-03-01T12:00:00.000Z')): FakeClock {
  let nowMs = startMs;
  return { now: () => nowMs, advance: (ms) => void (nowMs += ms) };
}
