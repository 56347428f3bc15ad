import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { jobStore, type JobContext } from '../../../src/platform/jobs/job.js';
import { removeExpiredJobs } from '../../../src/platform/jobs/manage-jobs.js';
import { removeExpiredJobsJob } from '../../../src/platform/jobs/manage-jobs.js';
import { extendLease } from '../../../src/platform/jobs/complete-job.js';
import { eventually } from '../../helpers/eventually.js';
import { defineJob, gate, openJobWorld, type JobWorld } from '../../helpers/job-world.js';

let world: JobWorld;
beforeEach(async () => {
  world = await openJobWorld();
});
afterEach(() => world.close());

const DAY = 86_400_000;
const enqueue: JobWorld['test']['app']['jobs']['enqueue'] = (...given) => world.test.app.jobs.enqueue(...given);

describe('a run', () => {
  it('knows which job it is of, which try it is, and that nobody has asked it to stop', async () => {
    const contexts: JobContext[] = [];
    const job = defineJob('test.context', async (_app, _payload, context) => {
      contexts.push(context);
      if (contexts.length === 1) throw new Error('once more');
    });
    await enqueue(job, {});
    const [record] = await world.allJobs();
    const jobId = record!._id;
    const worker = world.openWorker([job]);
    await worker.drain();
    world.clock.advance(2_000);
    await worker.drain();
    expect(contexts).toMatchObject([
      { jobId, attempt: 1, fence: 1, signal: { aborted: false }, stopping: { aborted: false } },
      { jobId, attempt: 2, fence: 2 },
    ]);
  });

  it('that failed is logged, as an error when it was the last one', async () => {
    const job = defineJob('test.fail', () => Promise.reject(new Error('no luck')), { retry: { delaysMs: [0] } });
    await enqueue(job, {});
    const [record] = await world.allJobs();
    await world.openWorker([job]).drain();
    const of = { job: 'test.fail', jobId: record!._id.toHexString(), err: { message: 'no luck' } };
    expect(world.logged('the job failed')).toMatchObject([{ level: 40, attempt: 1, outcome: 'retried', ...of }]);
    expect(world.logged('the job failed for the last time')).toMatchObject([{ level: 50, attempt: 2, ...of }]);
  });

  it('that failed waits for its next try free of its worker, and asked for once more it is that try', async () => {
    const [started, end] = [gate(), gate()];
    const job = defineJob('test.fail', async () => {
      started.open();
      await end.opened;
      throw new Error('not yet');
    });
    const options = { uniqueKey: 'k', whenPresent: 'rerun' } as const;
    await enqueue(job, {}, { ...options, lane: 'x' });
    const draining = world.openWorker([job]).drain();
    await started.opened;
    await enqueue(job, {}, options);
    end.open();
    await draining;
    const [waiting] = await world.allJobs();
    expect(waiting).toMatchObject({
      state: 'queued',
      attempts: 1,
      heldLane: 'x',
      updatedAt: new Date(world.clock.now()),
    });
    for (const field of ['workerId', 'leaseUntil', 'againAt']) expect(waiting).not.toHaveProperty(field);
  });

  it('may fail with what is no Error, and with more than is kept', async () => {
    const failures: unknown[] = ['a text', new Error('x'.repeat(3_000))];
    const job = defineJob('test.fail', () => Promise.reject(failures.shift() as Error), { retry: { delaysMs: [0] } });
    await enqueue(job, {}, { uniqueKey: 'k' });
    const worker = world.openWorker([job]);
    const errors: (string | undefined)[] = [];
    for (const _try of [1, 2]) {
      const [failed] = (await worker.drain(), await world.allJobs());
      errors.push(failed!.error);
    }
    expect(errors.at(-1)).toBe('x'.repeat(2_000));
  });

  it('that fails after its job was taken away is not logged as a failure', async () => {
    const [started, late] = [gate(), gate()];
    const job = defineJob('test.late', async () => {
      started.open();
      await late.opened;
      throw new Error('too late');
    });
    await enqueue(job, {});
    const worker = world.openWorker([job]);
    worker.start();
    await started.opened;
    await worker.stop(0);
    late.open();
    expect(await world.openWorker([{ ...job, run: async () => undefined }]).drain()).toBe(1);
    expect(await world.allJobs()).toEqual([]);
    expect(world.logged('the job failed')).toEqual([]);
  });

  it('that ends after its job was taken away is logged, and changes nothing', async () => {
    const [started, late] = [gate(), gate()];
    const job = defineJob('test.late', async () => {
      started.open();
      await late.opened;
    });
    await enqueue(job, {});
    const worker = world.openWorker([job], { leaseMs: 3_600_000 });
    worker.start();
    await started.opened;
    await jobStore(world.test.app).updateOne({}, { $inc: { fence: 1 } });
    late.open();
    await worker.stop(10_000);
    expect(world.logged('the job ended after its lease was lost: the completion is refused')).toHaveLength(1);
    expect(await world.allJobs()).toMatchObject([{ state: 'running', fence: 2 }]);
  });
});

describe('a job that is dead', () => {
  it('is kept for thirty days, free of its worker, lane and key', async () => {
    const job = defineJob('test.dead', () => Promise.reject(new Error('no')), { retry: { delaysMs: [] } });
    await enqueue(job, { n: 1 }, { uniqueKey: 'k', lane: 'x' });
    await world.openWorker([job]).drain();
    const [dead] = await world.allJobs();
    expect(dead).toMatchObject({ state: 'dead', attempts: 1, payload: { n: 1 }, lane: 'x' });
    for (const field of ['workerId', 'leaseUntil', 'heldLane', 'uniqueKey']) expect(dead).not.toHaveProperty(field);
    world.clock.advance(30 * DAY - 1);
    expect(await removeExpiredJobs(world.test.app)).toBe(0);
    world.clock.advance(1);
    expect(await removeExpiredJobs(world.test.app)).toBe(1);
    await enqueue(job, {}, { uniqueKey: 'k' });
    await world.openWorker([job]).drain();
    expect(await enqueue(job, {}, { uniqueKey: 'k' })).toBe(true);
  });
});

describe('a job that is done', () => {
  it('is kept as long as its key must not be used again, and lets go of its lane', async () => {
    const order: number[] = [];
    const job = defineJob('test.kept', async (_app, { n }: { n: number }) => void order.push(n));
    await enqueue(job, { n: 1 }, { uniqueKey: 'k', lane: 'x', keepMs: 60_000 });
    await enqueue(job, { n: 2 }, { lane: 'x' });
    await world.openWorker([job]).drain();
    expect(order).toEqual([1, 2]);
    const [done, ...others] = await world.allJobs();
    expect(others).toEqual([]);
    expect(done).toMatchObject({ state: 'done', updatedAt: new Date(world.clock.now()) });
    for (const field of ['workerId', 'leaseUntil', 'heldLane']) expect(done).not.toHaveProperty(field);
    for (const whenPresent of ['keep', 'rerun'] as const) {
      expect(await enqueue(job, { n: 3 }, { uniqueKey: 'k', whenPresent })).toBe(false);
    }
    world.clock.advance(60_000);
    expect(await removeExpiredJobs(world.test.app)).toBe(1);
    expect(await enqueue(job, { n: 4 }, { uniqueKey: 'k', whenPresent: 'rerun' })).toBe(true);
  });
});

describe('jobs whose time of being kept is over', () => {
  it('are removed by a job, but not while the clock may be wrong', async () => {
    const job = defineJob('test.kept', async () => undefined);
    const worker = world.openWorker([job, removeExpiredJobsJob]);
    const clean = async (): Promise<string[]> => {
      await enqueue(removeExpiredJobsJob, {});
      await worker.drain();
      return (await world.allJobs()).map(({ name }) => name);
    };
    const keep = (): Promise<boolean> => enqueue(job, {}, { keepMs: 3_600_000 });
    await keep();
    expect(await clean()).toEqual(['test.kept']);
    world.clock.advance(3_600_000);
    expect(await clean()).toEqual([]);
    await keep();
    await worker.drain();
    // Nobody can tell two days of which nothing is known from a clock that was moved.
    world.clock.advance(2 * DAY);
    expect(await clean()).toEqual(['test.kept']);
    world.clock.advance(DAY);
    expect(await clean()).toEqual([]);
  });
});

describe('a run that asks for another', () => {
  it('that only puts the work off keeps the number of tries', async () => {
    let runs = 0;
    const job = defineJob('test.put-off', async () => {
      runs++;
      if (runs === 1) throw new Error('not yet');
      return { again: new Date(world.clock.now() + 5_000), putOff: true };
    });
    await enqueue(job, {});
    const worker = world.openWorker([job]);
    await worker.drain();
    world.clock.advance(2_000);
    await worker.drain();
    const [waiting] = await world.allJobs();
    expect(waiting).toMatchObject({
      state: 'queued',
      attempts: 1,
      fence: 2,
      runAt: new Date(world.clock.now() + 5_000),
      updatedAt: new Date(world.clock.now()),
    });
    for (const field of ['workerId', 'leaseUntil', 'error']) expect(waiting).not.toHaveProperty(field);
  });

  it.each([
    ['later than it was asked for meanwhile', 60_000, 5_000],
    ['earlier than it was asked for meanwhile', 2_000, 2_000],
  ])('%s runs at the earlier moment, its tries counted anew', async (_when, againMs, earlierMs) => {
    const [started, end] = [gate(), gate()];
    const now = world.clock.now();
    const job = defineJob('test.again', async () => {
      started.open();
      await end.opened;
      return { again: new Date(now + againMs), putOff: true };
    });
    const options = { uniqueKey: 'k', whenPresent: 'rerun' } as const;
    await enqueue(job, {}, { ...options, lane: 'x' });
    const draining = world.openWorker([job]).drain();
    await started.opened;
    await enqueue(job, {}, { ...options, runAt: new Date(now + 5_000) });
    end.open();
    await draining;
    const [waiting] = await world.allJobs();
    expect(waiting).toMatchObject({ state: 'queued', attempts: 0, runAt: new Date(now + earlierMs) });
    for (const field of ['againAt', 'heldLane']) expect(waiting).not.toHaveProperty(field);
  });
});

describe('stopping a worker', () => {
  it('waits for what is under way, and hands nothing of it back meanwhile', async () => {
    const [started, end] = [gate(), gate()];
    let isStopping = false;
    const job = defineJob('test.slow', async (_app, _payload, { stopping }) => {
      started.open();
      await end.opened;
      isStopping = stopping.aborted;
    });
    await enqueue(job, {});
    const worker = world.openWorker([job]);
    worker.start();
    await started.opened;
    const stopped = worker.stop(60_000);
    for (let look = 0; look < 5; look++)
      expect(await world.allJobs()).toMatchObject([{ state: 'running', attempts: 1 }]);
    end.open();
    await stopped;
    expect(isStopping).toBe(true);
    expect(await world.allJobs()).toEqual([]);
  });

  it('tells what is handed back, which is free of the worker', async () => {
    const [started, told] = [gate(), gate()];
    const job = defineJob('test.stubborn', (_app, _payload, { signal }) => {
      signal.addEventListener('abort', () => told.open());
      started.open();
      return new Promise(() => undefined);
    });
    await enqueue(job, {});
    const worker = world.openWorker([job]);
    worker.start();
    await started.opened;
    world.clock.advance(100);
    await worker.stop(0);
    await told.opened;
    const [back] = await world.allJobs();
    expect(back).toMatchObject({ state: 'queued', attempts: 0, updatedAt: new Date(world.clock.now()) });
    for (const field of ['workerId', 'leaseUntil']) expect(back).not.toHaveProperty(field);
    // It is due at once.
    expect(await world.openWorker([{ ...job, run: async () => undefined }]).drain()).toBe(1);
  });

  it('ends it for good: it takes nothing when it is started again', async () => {
    const job = defineJob('test.never', async () => expect.unreachable('it was stopped'));
    const worker = world.openWorker([job]);
    await worker.stop(0);
    worker.start();
    await enqueue(job, {});
    await worker.stop(0);
    expect(await world.allJobs()).toMatchObject([{ state: 'queued', attempts: 0 }]);
  });
});

describe('what a worker cannot tell its database', () => {
  const isUpdate = (method: string, change: unknown, field: string): boolean =>
    method === 'updateOne' && JSON.stringify(change).includes(field);

  it('is logged where it is the lease, and the run goes on', async () => {
    const end = gate();
    const app = world.appWithout((method, _filter, change) => isUpdate(method, change, '{"$set":{"leaseUntil"'));
    const job = defineJob('test.long', () => end.opened);
    await enqueue(job, {});
    world.openWorker([job], { leaseMs: 30 }, app).start();
    await eventually('it is logged', () => world.logged('the lease could not be extended').length > 0);
    expect(world.logged('the lease could not be extended')[0]).toMatchObject({
      ...{ job: 'test.long', attempt: 1, err: { message: 'the database is away' } },
    });
    end.open();
    await eventually('it is done', async () => (await world.allJobs()).length === 0);
  });

  it('is logged where it is the end of a job, which is left to its lease', async () => {
    const app = world.appWithout((method) => method === 'deleteOne' || method === 'updateOne');
    const job = defineJob('test.done', async () => undefined);
    await enqueue(job, {});
    const worker = world.openWorker([job], { leaseMs: 3_600_000 }, app);
    expect(await worker.drain()).toBe(1);
    expect(world.logged('the job could not be settled')).toMatchObject([
      { job: 'test.done', err: { message: 'the database is away' } },
    ]);
    expect(await world.allJobs()).toMatchObject([{ state: 'running' }]);
  });

  it('is logged where it is a job that it hands back', async () => {
    const started = gate();
    const app = world.appWithout((method, _filter, change) => isUpdate(method, change, '"$inc":{"attempts":-1}'));
    const job = defineJob('test.stubborn', () => {
      started.open();
      return new Promise(() => undefined);
    });
    await enqueue(job, {});
    const worker = world.openWorker([job], { leaseMs: 3_600_000 }, app);
    worker.start();
    await started.opened;
    await worker.stop(0);
    expect(world.logged('the job could not be handed back')).toMatchObject([
      { job: 'test.stubborn', err: { message: 'the database is away' } },
    ]);
  });

  it('is logged where it is all of the queue, and it looks again', async () => {
    let isAway = true;
    const ran = gate();
    const app = world.appWithout((method) => method === 'updateMany' && isAway);
    const job = defineJob('test.after', async () => ran.open());
    world.openWorker([job], { idleMs: 20 }, app).start();
    await eventually('it is logged', () => world.logged('the job queue could not be read').length > 0);
    isAway = false;
    await enqueue(job, {});
    await ran.opened;
    expect(world.logged('the job queue could not be read')[0]).toMatchObject({
      err: { message: 'the database is away' },
    });
  });
});

describe('a heartbeat', () => {
  it('comes three times in the time of a lease', async () => {
    vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] });
    try {
      const [started, end] = [gate(), gate()];
      const job = defineJob('test.beat', () => {
        started.open();
        return end.opened;
      });
      await enqueue(job, {});
      const draining = world.openWorker([job], { leaseMs: 30_000 }).drain();
      await started.opened;
      world.clock.advance(10_000);
      vi.advanceTimersByTime(10_000);
      const until = new Date(world.clock.now() + 30_000);
      await eventually('it is renewed', async () => (await world.allJobs())[0]!.leaseUntil! >= until);
      end.open();
      await draining;
      expect(vi.getTimerCount()).toBe(0);
    } finally {
      vi.useRealTimers();
    }
  });

  it('makes the lease last from now on, and says whether it was still held', async () => {
    const job = defineJob('test.beat', () => new Promise(() => undefined));
    await enqueue(job, {});
    world.openWorker([job], { leaseMs: 3_600_000 }).start();
    const leased = await eventually('it is leased', async () =>
      (await world.allJobs()).find(({ fence }) => fence === 1),
    );
    world.clock.advance(10_000);
    expect(await extendLease(world.test.app, leased, 15_000)).toBe(true);
    expect(await world.allJobs()).toMatchObject([{ leaseUntil: new Date(world.clock.now() + 15_000) }]);
    expect(await extendLease(world.test.app, { ...leased, fence: 0 }, 15_000)).toBe(false);
  });
});
