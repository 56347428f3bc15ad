import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { App } from '../../../../src/app.js';
import { claimJobs } from '../../../../src/platform/jobs/claim-jobs.js';
import { jobStore, type AnyJobDefinition, type JobRecord } from '../../../../src/platform/jobs/job.js';
import { openRunner } from '../../../../src/platform/jobs/runner.js';
import { startSchedules } from '../../../../src/platform/jobs/schedules.js';
import { eventually } from '../../../helpers/eventually.js';
import { openTestApp, type TestApp } from '../../../helpers/open-test-app.js';

const DAY = 86_400_000;
const YEAR = 365 * DAY;

/** Milliseconds of processor time that some work takes, of all threads of this process. */
async function measure(work: () => unknown): Promise<number> {
  const before = process.cpuUsage();
  await work();
  const { user, system } = process.cpuUsage(before);
  return (user + system) / 1000;
}

describe('a worker whose clock is four minutes ahead', () => {
  let test: TestApp;
  let end: () => void;
  let stop: () => Promise<unknown>;

  beforeEach(async () => {
    test = await openTestApp();
    stop = () => Promise.resolve();
  });
  afterEach(async () => {
    end();
    await stop();
    await test.close();
  });

  const allJobs = (): Promise<JobRecord[]> => jobStore(test.app).find({}).toArray();

  it('takes nothing from who is alive, and what a dead one has leased all the same', async () => {
    const ended = new Promise<void>((resolve) => (end = resolve));
    let runs = 0;
    const long: AnyJobDefinition<App> = {
      name: 'test.long',
      retry: { delaysMs: [1_000] },
      async run() {
        runs++;
        await ended;
      },
    };
    const lost: AnyJobDefinition<App> = { name: 'test.lost', retry: { delaysMs: [0] }, run: async () => undefined };
    const ahead = { ...test.app, clock: { ...test.app.clock, now: () => Date.now() + 4 * 60_000 } };
    // Long enough that a busy machine’s heart beats in time.
    const leaseMs = 3_000;
    const lease = { concurrency: 10, leaseMs };
    const now = { runAt: new Date(0) };
    await test.app.jobs.enqueue(lost, {}, now);
    const dead = { workerId: 'dead', pool: 'shared', names: [lost.name], leaseMs, limit: 1, crowded: false };
    await claimJobs(test.app, dead, () => undefined);
    await test.app.jobs.enqueue(long, {}, now);
    const [worker, wrong] = [openRunner(test.app, [long], lease), openRunner(ahead, [long, lost], lease)];
    stop = () => Promise.all([worker.stop(0), wrong.stop(0)]);
    worker.start();
    await eventually('it runs', () => runs === 1);
    wrong.start();
    await eventually('the dead worker’s job is done by another', async () =>
      (await allJobs()).every(({ name }) => name !== lost.name),
    );
    const leased = (await allJobs())[0]!.leaseUntil!.getTime();
    const until = leased + 2.5 * leaseMs;
    await eventually('some leases go by', async () => (await allJobs())[0]!.leaseUntil!.getTime() > until);
    expect(runs).toBe(1);
    expect(await allJobs()).toMatchObject([{ fence: 1 }]);
    end();
    await worker.stop(1_000);
    expect(await allJobs()).toEqual([]);
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
