import { createTask } from 'node-cron';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import type { App } from '../../../../src/app.js';
import { beginRestore } from '../../../../src/platform/database/restore-mark.js';
import { jobStore, type AnyJobDefinition } from '../../../../src/platform/jobs/job.js';
import { readTicks, startSchedules } from '../../../../src/platform/jobs/schedules.js';
import { SCHEDULES } from '../../../../src/worker.js';
import { openTestApp, type TestApp } from '../../../helpers/open-test-app.js';
import { openRandom } from '../../../helpers/random.js';

const DAY = 86_400_000;
const YEAR = 365 * DAY;
const at = (text: string): number => Date.parse(`${text}Z`);

/** Milliseconds of processor time that some work takes, of all threads of this process. */
async function measure(work: () => unknown): Promise<number> {
  const before = process.cpuUsage();
  await work();
  const { user, system } = process.cpuUsage(before);
  return (user + system) / 1000;
}

describe('the ticks of a cron expression', () => {
  const OTHERS = [
    '0 3 * * *',
    '30 2 1 * *',
    '5 4 * * sun',
    '0 0 29 2 *',
    '15,45 8-17 * jan,jul 1-5',
    '59 59 23 31 12 *',
    '0 12 l * *',
    '0 5 1-15 * 7',
    '0 5 13 * fri',
    '0 6 * * 5#2',
    '45,15 20,8 * * *',
  ];

  it.each([...SCHEDULES.map(({ cron }) => cron), ...OTHERS])(
    '%s: are those of node-cron from any moment on',
    (cron) => {
      vi.useFakeTimers();
      try {
        const ticks = readTicks(cron);
        const task = createTask(cron, () => undefined, { timezone: 'UTC' });
        const random = openRandom(7);
        const moments = [at('2026-12-31T23:59:59.999'), at('2028-02-29T00:00:00'), at('2026-03-01T00:00:00.001')];
        for (let n = 0; n < 20; n++) moments.push(at('2026-01-01T00:00') + random.below(3 * YEAR));
        for (const ms of moments) {
          vi.setSystemTime(ms);
          expect(new Date(ticks.after(ms)!)).toEqual(task.getNextRuns(1)[0]);
        }
      } finally {
        vi.useRealTimers();
      }
    },
  );

  it('are over when there is none within eight years', () => {
    // A 29th of February that is a Monday: 2044.
    const leapMondays = readTicks('0 0 29 2 mon');
    expect(leapMondays.after(at('2026-01-01T00:00'))).toBeNull();
    expect(leapMondays.after(at('2040-01-01T00:00'))).toBe(at('2044-02-29T00:00'));
  });

  it('skip the day in eight years on which there is no 29th of February', () => {
    expect(readTicks('0 0 29 2 *').after(at('2096-03-01T00:00'))).toBe(at('2104-02-29T00:00'));
  });

  it('are refused when the expression is none', () => {
    expect(() => readTicks('every day')).toThrow();
  });
});

it('a look at all schedules after a jump of a year takes less than 50 ms', async () => {
  const ticks = SCHEDULES.map(({ cron }) => readTicks(cron));
  const spentMs = await measure(() => ticks.map((each) => each.after(at('2027-01-01T00:00'))));
  expect(spentMs).toBeLessThan(50);
});

describe('the timer of schedules', () => {
  const START = at('2026-03-01T12:00:00');
  const job: AnyJobDefinition<App> = { name: 'test.tick', retry: { delaysMs: [] }, run: async () => undefined };
  let test: TestApp;
  let deps: App;
  let stop: () => Promise<void>;

  beforeEach(async () => {
    test = await openTestApp();
    deps = test.app;
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'Date'], now: START });
  });
  afterEach(async () => {
    await stop();
    vi.useRealTimers();
    await test.close();
  });

  const start = (...crons: string[]): void => {
    stop = startSchedules(
      deps,
      crons.map((cron) => ({ job, cron })),
    );
  };
  /** Time goes by, for timers and the clock alike. */
  const pass = (ms: number): void => void vi.advanceTimersByTime(ms);
  /** The clock is moved, or the machine slept: no timer knows of it. */
  const moveClock = (ms: number): void => void vi.setSystemTime(Date.now() + ms);
  /** The moments for which there are jobs, when nothing is being enqueued any more; ends the timer. */
  const ticks = async (): Promise<string[]> => {
    await stop();
    const jobs = await jobStore(test.app).find({}).toArray();
    return jobs.map(({ uniqueKey }) => uniqueKey!.replace('test.tick@2026-', '').replace(':30.000Z', '')).sort();
  };
  const logged = (text: string): number => test.logLines.filter((line) => line.includes(text)).length;

  it('enqueues a job at its moment and not before', async () => {
    start('30 * * * * *');
    pass(29_999);
    expect(await ticks()).toEqual([]);
    start('30 * * * * *');
    pass(1);
    expect(await ticks()).toEqual(['03-01T12:00']);
  });

  it('goes on with the next moment, and ends when it is stopped', async () => {
    start('30 * * * * *');
    pass(3 * 60_000);
    await stop();
    pass(60_000);
    expect(await ticks()).toEqual(['03-01T12:00', '03-01T12:01', '03-01T12:02']);
  });

  it('waits for what is being enqueued when it is stopped', async () => {
    start('30 * * * * *');
    pass(30_000);
    await stop();
    expect(await jobStore(test.app).find({}).toArray()).toHaveLength(1);
  });

  it('makes up for what was missed by one run within a second, and goes on from now', async () => {
    start('30 * * * * *');
    moveClock(3 * DAY);
    pass(1_000);
    expect(await ticks()).toEqual(['03-01T12:00']);
    start('30 * * * * *');
    pass(29_000);
    expect(await ticks()).toEqual(['03-01T12:00', '03-04T12:00']);
  });

  it('goes on after what was missed without being started again', async () => {
    start('30 * * * * *');
    moveClock(3 * DAY);
    pass(90_000);
    expect(await ticks()).toEqual(['03-01T12:00', '03-04T12:00', '03-04T12:01']);
  });

  it('begins anew within a second when the clock was set back', async () => {
    start('30 * * * * *');
    moveClock(-7_200_000);
    pass(30_000);
    expect(await ticks()).toEqual(['03-01T10:00']);
    expect(logged('the clock was set back')).toBe(1);
  });

  it('takes a small correction of the clock for none', async () => {
    start('30 * * * * *');
    pass(30_000);
    moveClock(-900);
    pass(30_000);
    expect(await ticks()).toEqual(['03-01T12:00']);
    expect(logged('the clock was set back')).toBe(0);
  });

  it('enqueues nothing into a store that is being restored', async () => {
    await beginRestore(test.app.db);
    start('30 * * * * *');
    pass(60_000);
    expect(await ticks()).toEqual([]);
  });

  it('logs a job that cannot be enqueued, and goes on', async () => {
    let calls = 0;
    const enqueue: App['jobs']['enqueue'] = (...given) => {
      if (++calls === 1) throw new Error('the database is away');
      return test.app.jobs.enqueue(...given);
    };
    deps = { ...test.app, jobs: { ...test.app.jobs, enqueue } };
    start('30 * * * * *');
    pass(30_000);
    await stop();
    start('30 * * * * *');
    pass(60_000);
    expect(await ticks()).toEqual(['03-01T12:01']);
    expect(logged('"job":"test.tick"')).toBe(1);
    expect(logged('a scheduled job could not be enqueued')).toBe(1);
  });

  it('leaves out what names no day within eight years, and runs the others', async () => {
    start('30 0 0 29 2 mon', '30 * * * * *');
    pass(60_000);
    expect(await ticks()).toEqual(['03-01T12:00']);
  });

  it('looks at the clock once a second, however long nothing is due', () => {
    let looks = 0;
    deps = {
      ...test.app,
      clock: {
        ...test.app.clock,
        now() {
          looks++;
          return Date.now();
        },
      },
    };
    start('30 0 0 29 2 mon', '0 0 1 1 *');
    pass(60_000);
    // One of them at its beginning.
    expect(looks).toBe(61);
  });
});
