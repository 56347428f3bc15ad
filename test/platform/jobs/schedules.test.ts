import { createTask } from 'node-cron';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import type { App } from '../../../src/app.js';
import type { AnyJobDefinition } from '../../../src/platform/jobs/job.js';
import { readTicks } from '../../../src/platform/jobs/next-tick.js';
import { openRunner } from '../../../src/platform/jobs/runner.js';
import { startSchedules } from '../../../src/platform/jobs/schedules.js';
import { SCHEDULES } from '../../../src/worker.js';
import { eventually } from '../../helpers/eventually.js';
import { openTestApp, type TestApp } from '../../helpers/open-test-app.js';
import { openRandom } from '../../helpers/random.js';

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

describe('schedules while the clock is moved', () => {
  let test: TestApp;
  let aheadMs: number;
  let deps: App;
  /** The ticks that ran, and what the clock said then. */
  let runs: { tickMs: number; ranMs: number }[];
  let stop: () => Promise<void>;

  beforeEach(async () => {
    aheadMs = 0;
    runs = [];
    test = await openTestApp({ clock: { now: () => Date.now() + aheadMs } });
    const job: AnyJobDefinition<App> = { name: 'test.tick', retry: { delaysMs: [] }, run: async () => undefined };
    deps = {
      ...test.app,
      jobs: {
        ...test.app.jobs,
        enqueue: async (definition, payload, options) => {
          const tickMs = Date.parse(options!.uniqueKey!.split('@')[1]!);
          const isNew = await test.app.jobs.enqueue(definition, payload, options);
          if (isNew) runs.push({ tickMs, ranMs: deps.clock.now() });
          return isNew;
        },
      },
    };
    const runner = openRunner(deps, [job], { concurrency: 1 });
    runner.start();
    const stopSchedules = startSchedules(deps, [{ job, cron: '* * * * * *' }]);
    stop = async () => {
      await stopSchedules();
      await runner.stop(1_000);
    };
  });
  afterEach(async () => {
    await stop();
    await test.close();
  });

  const late = (): number => runs.filter(({ tickMs, ranMs }) => ranMs - tickMs > DAY / 2).length;
  const runsAfter = (ms: number): number => runs.filter(({ tickMs }) => tickMs >= ms).length;

  it('make up for what was missed by one run, for next to no processor time, and go on from now', async () => {
    await eventually('they run', () => runs.length > 0);
    let jumps = 0;
    for (const by of [DAY, 30 * DAY, YEAR]) {
      aheadMs += by;
      const landed = deps.clock.now();
      const spentMs = await measure(() => eventually('they go on from there', () => runsAfter(landed) >= 2));
      expect(late()).toBeLessThanOrEqual(++jumps);
      expect(spentMs).toBeLessThan(500);
    }
  });

  it('go on within a tick or two after it was set back, and make no tick twice', async () => {
    aheadMs = YEAR;
    await eventually('they run there', () => runsAfter(Date.now() + YEAR - DAY) > 0);
    aheadMs = 0;
    const landed = Date.now();
    await eventually(
      'they run here',
      () => runs.filter(({ ranMs, tickMs }) => tickMs >= landed && ranMs < landed + DAY).length > 1,
    );
    expect(new Set(runs.map(({ tickMs }) => tickMs)).size).toBe(runs.length);
  });
});

it('a look at all schedules after a jump of a year takes less than 50 ms', async () => {
  const ticks = SCHEDULES.map(({ cron }) => readTicks(cron));
  const spentMs = await measure(() => ticks.map((each) => each.after(at('2027-01-01T00:00'))));
  expect(spentMs).toBeLessThan(50);
});
