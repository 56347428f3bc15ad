import { describe, expect, it } from 'vitest';
import { continueClock, isClockSteady } from '../../src/platform/database/clock-drift.js';
import { isToCome, openServiceClock } from '../../src/platform/time/clock.js';
import { createFakeClock } from '../helpers/fake-clock.js';
import { useTestApp } from '../helpers/use.js';

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;

describe('the service’s clock', () => {
  it('is the machine’s while that goes on, or ahead', () => {
    const machine = createFakeClock();
    const clock = openServiceClock(machine);
    for (const ms of [0, 1, MINUTE, 365 * 24 * HOUR]) {
      machine.advance(ms);
      expect(clock.now()).toBe(machine.now());
    }
  });

  it('goes on at half the speed after that was set back by an hour, until that has caught up', () => {
    const machine = createFakeClock();
    let timerMs = 0;
    const clock = openServiceClock(machine, () => timerMs);
    const start = clock.now();
    machine.advance(-HOUR);
    expect([clock.now(), clock.machine()]).toEqual([start, start - HOUR]);
    for (let passed = MINUTE; passed < 2 * HOUR - MINUTE; passed += MINUTE) {
      timerMs += MINUTE;
      machine.advance(MINUTE);
      expect(clock.now()).toBe(start + passed / 2);
    }
    machine.advance(2 * MINUTE);
    expect(clock.now()).toBe(machine.now());
  });

  it('never goes back, however often the machine’s is moved while it is less than an hour off', () => {
    const machine = createFakeClock();
    let timerMs = 0;
    const clock = openServiceClock(machine, () => timerMs);
    let before = clock.now();
    let offMinutes = 0;
    for (let step = 1; step < 500; step++) {
      const nextMinutes = ((step * 7919) % 61) - 30;
      timerMs += MINUTE;
      machine.advance((1 + nextMinutes - offMinutes) * MINUTE);
      offMinutes = nextMinutes;
      const now = clock.now();
      expect(now).toBeGreaterThanOrEqual(before);
      expect(now - machine.now()).toBeLessThanOrEqual(HOUR);
      before = now;
    }
  });

  it('follows at once a machine’s that was wrong by more than an hour', () => {
    const machine = createFakeClock();
    const clock = openServiceClock(machine);
    machine.advance(-HOUR - 1);
    expect(clock.now()).toBe(machine.now());
  });
});

describe('processes whose clocks were set back', () => {
  const machine = createFakeClock();
  const other = createFakeClock();

  it('go on from the latest moment that one of them, or an earlier one, has seen', async () => {
    const test = await useTestApp({ clock: machine });
    expect(await isClockSteady(test.app)).toBe(true);
    const seen = machine.now();
    // One that starts when its clock was set back.
    other.advance(-HOUR / 2);
    const starting = { db: test.app.db, clock: openServiceClock(other, () => 0) };
    expect(starting.clock.now()).toBe(seen - HOUR / 2);
    await continueClock(starting);
    expect(starting.clock.now()).toBe(seen);
    // Both look: neither takes the other back.
    machine.advance(10 * MINUTE);
    other.advance(2 * MINUTE);
    await isClockSteady(test.app);
    await isClockSteady({ ...test.app, clock: starting.clock });
    expect(starting.clock.now()).toBe(machine.now());
    expect(test.app.clock.now()).toBe(machine.now());
    // What a machine has noted whose clock was wrong by a year is not believed.
    other.advance(-2 * HOUR);
    const late = { db: test.app.db, clock: openServiceClock(other) };
    await continueClock(late);
    expect(late.clock.now()).toBe(other.now());
  });
});

it('what ends later than it could if it began now is over', () => {
  const now = Date.parse('2026-03-01T12:00:00.000Z');
  const ends = (afterMs: number): boolean => isToCome(now + afterMs, HOUR, now);
  expect([0, 1, HOUR, HOUR + 5 * MINUTE, HOUR + 5 * MINUTE + 1].map(ends)).toEqual([false, true, true, true, false]);
});
