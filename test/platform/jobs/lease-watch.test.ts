import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import type { App } from '../../../src/app.js';
import { claimJobs } from '../../../src/platform/jobs/claim-jobs.js';
import { jobStore, type AnyJobDefinition } from '../../../src/platform/jobs/job.js';
import { openLeaseWatch, openRunner, type LeaseWatch } from '../../../src/platform/jobs/runner.js';
import { createFakeClock, type FakeClock } from '../../helpers/fake-clock.js';
import { openTestApp, type TestApp } from '../../helpers/open-test-app.js';

const LEASE_MS = 15_000;
const HOUR_MS = 3_600_000;
const job: AnyJobDefinition<App> = {
  name: 'test.leased',
  retry: { delaysMs: [1_000] },
  run: () => Promise.resolve(undefined),
};

let test: TestApp;
let clock: FakeClock;
let watch: LeaseWatch;

beforeEach(async () => {
  clock = createFakeClock();
  test = await openTestApp({ clock });
  watch = openLeaseWatch(test.app, new Map([[job.name, job]]), LEASE_MS);
});
afterEach(() => test.close());

/** As a worker has it that is killed right after. */
async function leaveToADeadWorker(): Promise<void> {
  await test.app.jobs.enqueue(job, {});
  const [record] = await jobStore(test.app).find({}).toArray();
  const request = { workerId: 'dead', pool: record!.pool, names: [job.name], leaseMs: LEASE_MS, limit: 1 };
  await claimJobs(test.app, { ...request, crowded: false }, () => undefined);
}
const leaseEndsIn = async (): Promise<number | null> => {
  const [record] = await jobStore(test.app).find({ state: 'running' }).toArray();
  return record ? record.leaseUntil!.getTime() - clock.now() : null;
};

it('ends leases of a time to come when the clock was set back while it watched', async () => {
  await watch.takeBack(HOUR_MS);
  await leaveToADeadWorker();
  clock.advance(-2 * HOUR_MS);
  expect(await leaseEndsIn()).toBe(2 * HOUR_MS + LEASE_MS);
  await watch.takeBack(HOUR_MS);
  expect(await leaseEndsIn()).toBe(LEASE_MS);
});

it('ends them at its first look, and leaves them alone while no clock is moved', async () => {
  await leaveToADeadWorker();
  clock.advance(-2 * HOUR_MS);
  await watch.takeBack(HOUR_MS);
  expect(await leaseEndsIn()).toBe(LEASE_MS);
  // As another worker does whose clock is two hours ahead.
  await jobStore(test.app).updateOne({}, { $set: { leaseUntil: new Date(clock.now() + 2 * HOUR_MS) } });
  clock.advance(1);
  await watch.takeBack(HOUR_MS);
  expect(await leaseEndsIn()).toBe(2 * HOUR_MS - 1);
  watch.forget();
  await watch.takeBack(HOUR_MS);
  expect(await leaseEndsIn()).toBe(LEASE_MS);
});

it('takes a job back whose lease is over since it watches, and not at the first look', async () => {
  await leaveToADeadWorker();
  clock.advance(LEASE_MS + 1);
  await watch.takeBack(0);
  expect(await leaseEndsIn()).toBe(null);
});

describe('a clock that was set back', () => {
  const waiting = async (): Promise<{ runInMs: number; notedMs: number }[]> => {
    const records = await jobStore(test.app).find({}).sort({ _id: 1 }).toArray();
    return records.map(({ runAt, updatedAt }) => ({
      runInMs: runAt.getTime() - clock.now(),
      notedMs: updatedAt.getTime() - clock.now(),
    }));
  };

  it('lets jobs that were put off there wait as long as they were put off', async () => {
    const now = clock.now();
    await test.app.jobs.enqueue(job, {}, { runAt: new Date(now + 600_000) });
    await test.app.jobs.enqueue(job, {}, { runAt: new Date(now - 600_000) });
    clock.advance(-2 * HOUR_MS);
    await watch.takeBack(HOUR_MS);
    expect(await waiting()).toEqual([
      { runInMs: 600_000, notedMs: 0 },
      { runInMs: 0, notedMs: 0 },
    ]);
  });

  it('has those run once more that were asked for at a moment of there, within a minute', async () => {
    await test.app.jobs.enqueue(job, {}, { uniqueKey: 'k', whenPresent: 'rerun' });
    clock.advance(-2 * HOUR_MS);
    await watch.takeBack(HOUR_MS);
    await openRunner(test.app, [job], { concurrency: 1 }).drain();
    expect((await waiting()).map(({ runInMs }) => runInMs)).toEqual([60_000]);
    clock.advance(60_000);
    await openRunner(test.app, [job], { concurrency: 1 }).drain();
    expect(await waiting()).toEqual([]);
  });

  it('changes nothing that was noted by a time that can be this one, as of machines whose clocks differ', async () => {
    await test.app.jobs.enqueue(job, {}, { runAt: new Date(clock.now() + 10 * HOUR_MS) });
    clock.advance(-HOUR_MS);
    await watch.takeBack(HOUR_MS);
    expect(await waiting()).toEqual([{ runInMs: 11 * HOUR_MS, notedMs: HOUR_MS }]);
  });
});

describe('a lease that is over', () => {
  const PATIENCE_MS = 10_000;
  beforeEach(() => void vi.useFakeTimers({ toFake: ['performance'] }));
  afterEach(() => void vi.useRealTimers());
  /** Time goes by for the process, and for the clock unless it stands still. */
  const pass = (ms: number, clockMs = ms): void => {
    vi.advanceTimersByTime(ms);
    clock.advance(clockMs);
  };

  it('is ended when it was not renewed for as long as the watch is patient', async () => {
    await leaveToADeadWorker();
    clock.advance(LEASE_MS + 1);
    for (const ms of [5_000, 4_999]) {
      await watch.takeBack(PATIENCE_MS);
      expect(await leaseEndsIn()).not.toBeNull();
      pass(ms);
    }
    await watch.takeBack(PATIENCE_MS);
    expect(await leaseEndsIn()).not.toBeNull();
    pass(5_000);
    await watch.takeBack(PATIENCE_MS);
    expect(await leaseEndsIn()).toBeNull();
    expect(await jobStore(test.app).findOne({})).toMatchObject({
      state: 'queued',
      attempts: 1,
      error: 'The worker stopped answering.',
    });
    const logged = test.logLines.filter((line) => line.includes('its job was taken back'));
    expect(logged.map((line) => JSON.parse(line) as object)).toMatchObject([
      { job: job.name, attempt: 1, outcome: 'retried' },
    ]);
  });

  it('is ended as soon as it is over where its renewal has been missed for as long already', async () => {
    await leaveToADeadWorker();
    for (let look = 0; look < 3; look++) {
      await watch.takeBack(PATIENCE_MS);
      expect(await leaseEndsIn()).not.toBeNull();
      pass(5_001);
    }
    await watch.takeBack(PATIENCE_MS);
    expect(await leaseEndsIn()).toBeNull();
  });

  it('counts anew from each time that it was renewed', async () => {
    await leaveToADeadWorker();
    clock.advance(LEASE_MS + 1);
    await watch.takeBack(PATIENCE_MS);
    pass(5_000);
    // A renewal by a clock that is behind: over already, but a sign of life.
    await jobStore(test.app).updateOne({}, { $set: { leaseUntil: new Date(clock.now() - 1) } });
    for (const ms of [5_000, 5_000]) {
      await watch.takeBack(PATIENCE_MS);
      pass(ms);
      expect(await leaseEndsIn()).not.toBeNull();
    }
    await watch.takeBack(PATIENCE_MS);
    expect(await leaseEndsIn()).toBeNull();
  });

  it('is looked at three times in the time of a lease, however often it is asked for', async () => {
    await watch.takeBack(0);
    await leaveToADeadWorker();
    clock.advance(LEASE_MS + 1);
    pass(4_999, 0);
    await watch.takeBack(0);
    expect(await leaseEndsIn()).not.toBeNull();
    pass(1, 0);
    await watch.takeBack(0);
    expect(await leaseEndsIn()).toBeNull();
  });

  it('is left alone as long as it lasts, and where this worker does not know the kind', async () => {
    await leaveToADeadWorker();
    clock.advance(LEASE_MS);
    await watch.takeBack(0);
    expect(await leaseEndsIn()).toBe(0);
    clock.advance(1);
    await openLeaseWatch(test.app, new Map(), LEASE_MS).takeBack(0);
    expect(await leaseEndsIn()).toBe(-1);
    await jobStore(test.app).updateOne({}, { $inc: { fence: 1 } });
    watch.forget();
    await watch.takeBack(0);
    expect(await leaseEndsIn()).toBeNull();
  });
});
