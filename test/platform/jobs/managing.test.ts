import { ObjectId } from 'bson';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { jobStore, type JobRecord } from '../../../src/platform/jobs/job.js';
import { listJobs, presentJob, retryDeadJobs, retryJob } from '../../../src/platform/jobs/manage-jobs.js';
import { eventually } from '../../helpers/eventually.js';
import { defineJob, gate, openJobWorld, type JobWorld } from '../../helpers/job-world.js';

let world: JobWorld;
let works: boolean;
beforeEach(async () => {
  world = await openJobWorld();
  works = false;
});
afterEach(() => world.close());

const enqueue: JobWorld['test']['app']['jobs']['enqueue'] = (...given) => world.test.app.jobs.enqueue(...given);
const job = defineJob(
  'test.manage',
  async () => {
    if (!works) throw new Error('no');
  },
  { retry: { delaysMs: [] } },
);
const other = { ...job, name: 'test.other' };
const numbers = (jobs: readonly JobRecord[]): unknown[] => jobs.map(({ payload }) => payload.n);

describe('the list of jobs', () => {
  it('has those that run soonest first, and done ones only where they are asked for', async () => {
    works = true;
    await enqueue(job, { n: 1 }, { uniqueKey: 'a', keepMs: 60_000 });
    await world.openWorker([job]).drain();
    world.clock.advance(1_000);
    await enqueue(job, { n: 2 }, { uniqueKey: 'b', keepMs: 60_000 });
    await world.openWorker([job]).drain();
    for (const [n, laterMs] of [
      [3, 20],
      [4, 10],
    ] as const) {
      await enqueue(other, { n }, { runAt: new Date(world.clock.now() + laterMs) });
    }
    const { app } = world.test;
    expect(numbers(await listJobs(app, {}))).toEqual([4, 3]);
    expect(numbers(await listJobs(app, { state: 'done' }))).toEqual([2, 1]);
    expect(numbers(await listJobs(app, { state: 'queued', name: other.name }))).toEqual([4, 3]);
    expect(numbers(await listJobs(app, { name: job.name }))).toEqual([]);
    expect(numbers(await listJobs(app, { limit: 1 }))).toEqual([4]);
  });

  it('has a hundred of them unless more are asked for', async () => {
    for (let n = 0; n < 101; n++) await enqueue(other, { n });
    expect(await listJobs(world.test.app, {})).toHaveLength(100);
    expect(await listJobs(world.test.app, { limit: 200 })).toHaveLength(101);
  });

  it('shows of each what people want to know', async () => {
    const now = new Date(world.clock.now()).toISOString();
    await enqueue(job, { n: 1 }, { lane: 'x' });
    const present = async (): Promise<object[]> => (await listJobs(world.test.app, {})).map(presentJob);
    const shown = { id: (await world.allJobs())[0]!._id.toHexString(), name: job.name, payload: { n: 1 }, runAt: now };
    expect(await present()).toEqual([
      { ...shown, state: 'queued', attempts: 0, error: null, createdAt: now, updatedAt: now },
    ]);
    world.clock.advance(1_000);
    await world.openWorker([job]).drain();
    const later = new Date(world.clock.now()).toISOString();
    expect(await present()).toEqual([
      { ...shown, state: 'dead', attempts: 1, error: 'no', createdAt: now, updatedAt: later },
    ]);
  });
});

describe('a job that is tried again by hand', () => {
  it('is due at once with its tries counted anew, and is kept no longer for people to look at', async () => {
    await enqueue(job, { n: 1 });
    await enqueue(job, { n: 2 });
    await world.openWorker([job]).drain();
    world.clock.advance(5_000);
    works = true;
    const [dead] = await listJobs(world.test.app, { state: 'dead' });
    const now = new Date(world.clock.now());
    const retried = await retryJob(world.test.app, dead!._id.toHexString());
    expect(retried).toMatchObject({ _id: dead!._id, state: 'queued', attempts: 0, runAt: now, updatedAt: now });
    expect(retried).not.toHaveProperty('expireAt');
    await world.openWorker([job]).drain();
    expect(numbers(await world.allJobs())).toEqual([2]);
  });

  it('may wait for a later moment', async () => {
    await enqueue(job, {}, { runAt: new Date(world.clock.now() + 60_000) });
    const [waiting] = await world.allJobs();
    works = true;
    await retryJob(world.test.app, waiting!._id.toHexString());
    expect(await world.openWorker([job]).drain()).toBe(1);
  });

  it('wakes the workers, for one and for all that are dead', async () => {
    await enqueue(job, {});
    await enqueue(job, {});
    await world.openWorker([job]).drain();
    works = true;
    let woken = 0;
    world.test.app.jobs.onWake(() => void woken++);
    const [dead] = await listJobs(world.test.app, { state: 'dead' });
    await retryJob(world.test.app, dead!._id.toHexString());
    expect(woken).toBe(1);
    expect(await retryDeadJobs(world.test.app)).toBe(1);
    expect(woken).toBe(2);
  });

  it('is none that runs, is done or is not there', async () => {
    const [started, end] = [gate(), gate()];
    const running = defineJob('test.running', async () => {
      started.open();
      await end.opened;
    });
    await enqueue(running, {}, { uniqueKey: 'k', keepMs: 60_000 });
    const draining = world.openWorker([running]).drain();
    await started.opened;
    const id = (await world.allJobs())[0]!._id.toHexString();
    const none = { code: 'JOB_NOT_FOUND', message: expect.stringContaining(id) as string };
    await expect(retryJob(world.test.app, id)).rejects.toMatchObject(none);
    end.open();
    await draining;
    await expect(retryJob(world.test.app, id)).rejects.toMatchObject(none);
    for (const unknown of [new ObjectId().toHexString(), 'no id'])
      await expect(retryJob(world.test.app, unknown)).rejects.toMatchObject({ code: 'JOB_NOT_FOUND' });
  });
});

describe('all dead jobs', () => {
  beforeEach(async () => {
    for (const [n, each] of [job, job, other].entries()) await enqueue(each, { n });
    await world.openWorker([job, other]).drain();
    await enqueue(job, { n: 3 }, { runAt: new Date(world.clock.now() + 60_000) });
  });

  it('are tried again at once, of one kind or of every kind', async () => {
    world.clock.advance(1_000);
    expect(await retryDeadJobs(world.test.app, 'test.none')).toBe(0);
    expect(await retryDeadJobs(world.test.app, other.name)).toBe(1);
    expect(await retryDeadJobs(world.test.app)).toBe(2);
    works = true;
    expect(await world.openWorker([job, other]).drain()).toBe(3);
    expect(numbers(await world.allJobs())).toEqual([3]);
  });
});

it('a job that was tried by hand runs once where a worker had it queued already', async () => {
  let runs = 0;
  const counted = defineJob('test.counted', async () => void runs++);
  await enqueue(counted, {}, { runAt: new Date(world.clock.now() + 60_000) });
  world.openWorker([counted], { idleMs: 3_600_000 }).start();
  const [{ _id }] = (await jobStore(world.test.app).find({}).toArray()) as [JobRecord];
  await retryJob(world.test.app, _id.toHexString());
  await eventually('it has run', async () => (await world.allJobs()).length === 0);
  expect(runs).toBe(1);
});
