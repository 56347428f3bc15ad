import { afterEach, beforeEach, expect, it } from 'vitest';
import type { App } from '../../../src/app.js';
import { claimJobs } from '../../../src/platform/jobs/claim-jobs.js';
import { jobStore, type AnyJobDefinition } from '../../../src/platform/jobs/job.js';
import { openLeaseWatch, type LeaseWatch } from '../../../src/platform/jobs/lease-watch.js';
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
  clock.advance(-HOUR_MS);
  expect(await leaseEndsIn()).toBe(HOUR_MS + LEASE_MS);
  await watch.takeBack(HOUR_MS);
  expect(await leaseEndsIn()).toBe(LEASE_MS);
});

it('ends them at its first look, and leaves them alone while no clock is moved', async () => {
  await leaveToADeadWorker();
  clock.advance(-HOUR_MS);
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
