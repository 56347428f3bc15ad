import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { App } from '../../../src/app.js';
import { jobStore, type JobContext, type JobRecord } from '../../../src/platform/jobs/job.js';
import { openJobQueue } from '../../../src/platform/jobs/job-queue.js';
import { listJobs, removeExpiredJobs } from '../../../src/platform/jobs/manage-jobs.js';
import type { Runner } from '../../../src/platform/jobs/runner.js';
import { enqueueTick } from '../../../src/platform/jobs/schedules.js';
import { eventually } from '../../helpers/eventually.js';
import type { FakeClock } from '../../helpers/fake-clock.js';
import { defineJob, gate, openJobWorld, type Definition, type JobWorld } from '../../helpers/job-world.js';
import type { TestApp } from '../../helpers/open-test-app.js';

let world: JobWorld;
let test: TestApp;
let clock: FakeClock;

beforeEach(async () => {
  world = await openJobWorld();
  ({ test, clock } = world);
});
afterEach(() => world.close());

const openWorker: JobWorld['openWorker'] = (...given) => world.openWorker(...given);
const allJobs = (): Promise<JobRecord[]> => world.allJobs();

describe('a queued job', () => {
  it('runs once and is gone', async () => {
    const seen: unknown[] = [];
    const job = defineJob('test.note', async (_app, payload) => void seen.push(payload));
    await test.app.jobs.enqueue(job, { id: 7 });
    expect(await openWorker([job]).drain()).toBe(1);
    expect(await openWorker([job]).drain()).toBe(0);
    expect(seen).toEqual([{ id: 7 }]);
    expect(await allJobs()).toEqual([]);
  });

  it('is stored with what was asked for, and nothing else', async () => {
    const plain = defineJob('test.plain', async () => undefined);
    const own = defineJob('test.own', async () => undefined, { concurrency: 2, perParty: 1 });
    const now = new Date(clock.now());
    const runAt = new Date(clock.now() + 60_000);
    const asked = { uniqueKey: 'k', lane: 'x', party: 'p', keepMs: 60_000, priority: 2, runAt } as const;
    expect(await test.app.jobs.enqueue(plain, { n: 1 })).toBe(true);
    expect(await test.app.jobs.enqueue(own, { n: 2 }, asked)).toBe(true);
    const common = { state: 'queued', attempts: 0, fence: 0, createdAt: now, updatedAt: now };
    const [first, second] = await allJobs();
    expect(first).toEqual({
      ...{ _id: first!._id, ...common },
      ...{ name: 'test.plain', pool: 'shared', payload: { n: 1 }, priority: 1, runAt: now },
    });
    expect(second).toEqual({
      ...{ _id: second!._id, ...common },
      ...{ name: 'test.own', pool: 'test.own', payload: { n: 2 }, priority: 2, runAt },
      ...{ uniqueKey: 'k', lane: 'x', party: 'p', keepMs: 60_000 },
    });
  });

  it('is not taken for stored when the database is away', async () => {
    const job = defineJob('test.away', async () => undefined);
    const { db } = world.appWithout((method) => method === 'insertOne');
    const queue = openJobQueue(db, clock, null);
    for (const options of [{}, { uniqueKey: 'k' }, { uniqueKey: 'k', whenPresent: 'rerun' as const }]) {
      await expect(queue.enqueue(job, {}, options)).rejects.toThrow('the database is away');
    }
    expect(await allJobs()).toEqual([]);
  });

  it('waits for its moment', async () => {
    let runs = 0;
    const job = defineJob('test.later', async () => void runs++);
    await test.app.jobs.enqueue(job, {}, { runAt: new Date(clock.now() + 60_000) });
    const worker = openWorker([job]);
    clock.advance(59_999);
    await worker.drain();
    expect(runs).toBe(0);
    clock.advance(1);
    await worker.drain();
    expect(runs).toBe(1);
  });

  it('runs before less urgent ones, and among equals in the order of their moments', async () => {
    const order: number[] = [];
    const job = defineJob('test.order', async (_app, { n }: { n: number }) => void order.push(n));
    await test.app.jobs.enqueue(job, { n: 4 }, { priority: 2 });
    await test.app.jobs.enqueue(job, { n: 3 }, { runAt: new Date(clock.now() - 1) });
    await test.app.jobs.enqueue(job, { n: 2 }, { runAt: new Date(clock.now() - 2) });
    await test.app.jobs.enqueue(job, { n: 1 }, { priority: 0 });
    await openWorker([job], { concurrency: 1 }).drain();
    expect(order).toEqual([1, 2, 3, 4]);
  });

  it('is left alone by a worker that does not know its kind', async () => {
    const known = defineJob('test.known', async () => undefined);
    const unknown = defineJob('test.unknown', async () => undefined);
    await test.app.jobs.enqueue(unknown, {});
    expect(await openWorker([known]).drain()).toBe(0);
    expect(await allJobs()).toMatchObject([{ state: 'queued', attempts: 0 }]);
  });
});

describe('a job that fails', () => {
  it('is tried again by its schedule with some jitter, then is dead and tells why', async () => {
    const times: number[] = [];
    const job = defineJob('test.fail', async () => {
      times.push(clock.now());
      throw new Error('no luck');
    });
    await test.app.jobs.enqueue(job, {});
    const worker = openWorker([job]);
    const start = clock.now();
    await worker.drain();
    for (const delay of [1_000, 10_000]) {
      const [waiting] = await allJobs();
      const pause = waiting!.runAt.getTime() - clock.now();
      expect(pause).toBeGreaterThanOrEqual(delay);
      expect(pause).toBeLessThanOrEqual(delay * 1.1);
      clock.advance(pause - 1);
      expect(await worker.drain()).toBe(0);
      clock.advance(1);
      expect(await worker.drain()).toBe(1);
    }
    expect(times[0]).toBe(start);
    expect(times).toHaveLength(3);
    expect(await allJobs()).toMatchObject([{ state: 'dead', attempts: 3, error: 'no luck' }]);
  });

  it('goes on for ever when it must not be given up', async () => {
    let runs = 0;
    const failing = async (): Promise<void> => {
      runs++;
      throw new Error('again');
    };
    const job = defineJob('test.endless', failing, { retry: { delaysMs: [1_000], endless: true } });
    await test.app.jobs.enqueue(job, {});
    const worker = openWorker([job]);
    for (let round = 0; round < 20; round++) {
      await worker.drain();
      clock.advance(2_000);
    }
    expect(runs).toBe(20);
  });

  it('is dead in the end also when each run takes its process with it', async () => {
    const job = defineJob('test.killer', () => new Promise(() => undefined));
    await test.app.jobs.enqueue(job, {});
    for (let attempt = 1; attempt <= 3; attempt++) {
      // The process ends here: nobody settles the job or beats for it.
      const doomed = openWorker([job], { leaseMs: 3_600_000 });
      doomed.start();
      await eventually('the job is leased', async () => (await allJobs())[0]?.state === 'running');
      await jobStore(test.app).updateMany({}, { $set: { leaseUntil: new Date(clock.now() + 30_000) } });
      clock.advance(30_001);
      await openWorker([]).drain();
      await openWorker([{ ...job, run: async () => expect.unreachable('the run was counted, so it waits') }]).drain();
      clock.advance(20_000);
    }
    expect(await allJobs()).toMatchObject([{ state: 'dead', attempts: 3, error: 'The worker stopped answering.' }]);
  });
});

describe('a worker whose database goes away', () => {
  const openWorkerWith = (isAway: (method: string, filter: unknown) => boolean, definitions: Definition[]): Runner =>
    world.openWorker(definitions, { leaseMs: 3_600_000 }, world.appWithout(isAway));

  it('runs what it has leased before, instead of leaving it to whoever finds the lease over', async () => {
    const ran = gate();
    const job = defineJob('test.leased', async () => ran.open(), { retry: { delaysMs: [] } });
    await test.app.jobs.enqueue(job, {}, { priority: 0 });
    const away = (method: string, filter: unknown): boolean =>
      method === 'find' && (filter as { priority?: number }).priority === 1;
    openWorkerWith(away, [job]).start();
    await ran.opened;
    await eventually('it is done', async () => (await allJobs()).length === 0);
  });

  it('stops all the same, and tells what still runs', async () => {
    let isAway = false;
    const started = gate();
    const told = gate();
    const job = defineJob('test.stubborn', (_app, _payload, { signal }) => {
      signal.addEventListener('abort', () => told.open());
      started.open();
      return new Promise(() => undefined);
    });
    await test.app.jobs.enqueue(job, {});
    const worker = openWorkerWith(() => isAway, [job]);
    worker.start();
    await started.opened;
    isAway = true;
    await worker.stop(10);
    await told.opened;
    expect(await allJobs()).toMatchObject([{ state: 'running' }]);
  });
});

describe('a worker that lost its job', () => {
  it('cannot complete it any more, nor fail it, nor hand it back', async () => {
    for (const ending of ['complete', 'fail', 'hand back'] as const) {
      const late = gate();
      const contexts: JobContext[] = [];
      const slow = defineJob('test.slow', async (_app, _payload, context) => {
        contexts.push(context);
        await late.opened;
        if (ending === 'fail') throw new Error('too late');
      });
      // It has room for no other job, so that it does not take its own again.
      const frozen = openWorker([slow], { concurrency: 1, leaseMs: 3_600_000 });
      await test.app.jobs.enqueue(slow, {});
      frozen.start();
      await eventually('the job is under way', () => contexts.length > 0);
      await jobStore(test.app).updateMany({}, { $set: { leaseUntil: new Date(clock.now()) } });
      clock.advance(1);
      const second = gate();
      const quick = defineJob('test.slow', async (_app, _payload, context) => {
        contexts.push(context);
        second.open();
        await new Promise((resolve) => setImmediate(resolve));
      });
      const other = openWorker([quick]);
      await other.drain();
      clock.advance(2_000);
      const finishing = other.drain();
      await second.opened;
      if (ending === 'hand back') await frozen.stop(0);
      late.open();
      await finishing;
      await frozen.stop(1_000);
      expect(contexts[1]!.fence).toBe(contexts[0]!.fence + 1);
      expect(await allJobs()).toEqual([]);
    }
  });

  it('is told by its signal at the next heartbeat', async () => {
    const told = gate();
    const job = defineJob('test.told', (_app, _payload, { signal }) => {
      signal.addEventListener('abort', () => told.open());
      return told.opened;
    });
    await test.app.jobs.enqueue(job, {});
    openWorker([job], { leaseMs: 60 }).start();
    await eventually('the job is under way', async () => (await allJobs())[0]?.state === 'running');
    await jobStore(test.app).updateMany({}, { $inc: { fence: 1 } });
    await told.opened;
  });

  it('keeps it as long as its heart beats', async () => {
    const end = gate();
    const job = defineJob('test.long', () => end.opened);
    await test.app.jobs.enqueue(job, {});
    openWorker([job], { leaseMs: 30 }).start();
    const leased = await eventually('the job is leased', async () => (await allJobs())[0]?.leaseUntil);
    clock.advance(20);
    await eventually('the lease is longer', async () => (await allJobs())[0]!.leaseUntil! > leased);
    expect(await openWorker([job], { leaseMs: 30 }).drain()).toBe(0);
    end.open();
    await eventually('the job is done', async () => (await allJobs()).length === 0);
  });
});

describe('jobs with a unique key', () => {
  it('are one job while it waits and while it runs', async () => {
    const end = gate();
    let runs = 0;
    const job = defineJob('test.unique', async () => {
      runs++;
      await end.opened;
    });
    expect(await test.app.jobs.enqueue(job, {}, { uniqueKey: 'k' })).toBe(true);
    expect(await test.app.jobs.enqueue(job, {}, { uniqueKey: 'k' })).toBe(false);
    const draining = openWorker([job]).drain();
    await eventually('it runs', () => runs === 1);
    expect(await test.app.jobs.enqueue(job, {}, { uniqueKey: 'k' })).toBe(false);
    end.open();
    await draining;
    expect(await test.app.jobs.enqueue(job, {}, { uniqueKey: 'k' })).toBe(true);
  });

  it('are one job even when a hundred are enqueued at once', async () => {
    const job = defineJob('test.unique', async () => undefined);
    const results = await Promise.all(
      Array.from({ length: 100 }, () => test.app.jobs.enqueue(job, {}, { uniqueKey: 'same' })),
    );
    expect(results.filter(Boolean)).toHaveLength(1);
    expect(await allJobs()).toHaveLength(1);
  });

  it('run once more when asked for while running, so that nothing is missed', async () => {
    const first = gate();
    let runs = 0;
    const job = defineJob('test.rerun', async () => {
      if (++runs === 1) await first.opened;
    });
    const options = { uniqueKey: 'k', whenPresent: 'rerun' } as const;
    await test.app.jobs.enqueue(job, {}, options);
    const draining = openWorker([job]).drain();
    await eventually('it runs', () => runs === 1);
    const other = defineJob('test.other', async () => undefined);
    await test.app.jobs.enqueue(other, {}, { uniqueKey: 'other', runAt: new Date(clock.now() + 60_000) });
    expect(await test.app.jobs.enqueue(job, {}, options)).toBe(false);
    expect(await test.app.jobs.enqueue(job, {}, options)).toBe(false);
    expect((await allJobs()).map(({ name, againAt }) => [name, againAt !== undefined])).toEqual([
      ['test.rerun', true],
      ['test.other', false],
    ]);
    first.open();
    await draining;
    expect(runs).toBe(2);
    expect((await allJobs()).map(({ name }) => name)).toEqual(['test.other']);
  });

  it('run at the earlier of the moments asked for', async () => {
    let runs = 0;
    const job = defineJob('test.rerun', async () => void runs++);
    const options = { uniqueKey: 'k', whenPresent: 'rerun' } as const;
    await test.app.jobs.enqueue(job, {}, { ...options, runAt: new Date(clock.now() + 60_000) });
    expect(await test.app.jobs.enqueue(job, {}, { ...options, runAt: new Date(clock.now() + 90_000) })).toBe(false);
    expect(await test.app.jobs.enqueue(job, {}, { whenPresent: 'rerun' })).toBe(true);
    expect(await openWorker([job]).drain()).toBe(1);
    expect(await test.app.jobs.enqueue(job, {}, options)).toBe(false);
    await openWorker([job]).drain();
    expect(runs).toBe(2);
  });

  it.each(['waiting', 'running', 'failing'])(
    'run once more at the later of the moments when %s at the first',
    async (how) => {
      const first = gate();
      const attempts: number[] = [];
      const job = defineJob('test.promised', async (_app, _payload, { attempt }) => {
        if (attempts.push(attempt) > 1) return;
        if (how === 'running') await first.opened;
        if (how === 'failing') throw new Error('not yet');
      });
      const options = { uniqueKey: 'k', whenPresent: 'rerun' } as const;
      // Before a write that its process may not outlive.
      const promise = () => test.app.jobs.enqueue(job, {}, { ...options, runAt: new Date(clock.now() + 30_000) });
      await test.app.jobs.enqueue(job, {}, options);
      if (how === 'waiting') await promise();
      const draining = openWorker([job]).drain();
      await eventually('it runs', () => attempts.length === 1);
      if (how === 'running') await promise();
      first.open();
      await draining;
      if (how === 'failing') await promise();
      clock.advance(29_999);
      await openWorker([job]).drain();
      const before = [...attempts];
      clock.advance(1);
      await openWorker([job]).drain();
      expect(before).toEqual(how === 'failing' ? [1, 2] : [1]);
      expect(attempts).toEqual([...before, 1]);
      expect(await allJobs()).toEqual([]);
    },
  );
});

describe('a run that asks for another', () => {
  it('runs again at that moment with its attempts counted anew', async () => {
    let runs = 0;
    const job = defineJob('test.again', async () => {
      if (++runs === 1) return { again: new Date(clock.now() + 5_000) };
      return undefined;
    });
    await test.app.jobs.enqueue(job, {});
    const worker = openWorker([job]);
    await worker.drain();
    expect(await allJobs()).toMatchObject([{ state: 'queued', attempts: 0 }]);
    clock.advance(5_000);
    await worker.drain();
    expect(runs).toBe(2);
    expect(await allJobs()).toEqual([]);
  });
});

describe('jobs of one lane', () => {
  it('run one after the other, in order, over several workers, while other lanes go on', async () => {
    const log: string[] = [];
    const busy = new Set<string>();
    const job = defineJob('test.lane', async (_app, { lane, n }: { lane: string; n: number }) => {
      expect(busy.has(lane)).toBe(false);
      busy.add(lane);
      await new Promise((resolve) => setImmediate(resolve));
      busy.delete(lane);
      log.push(`${lane}${n}`);
    });
    for (let n = 0; n < 5; n++) {
      for (const lane of ['a', 'b', 'c']) {
        await test.app.jobs.enqueue(job, { lane, n }, { lane, runAt: new Date(clock.now() - 100 + n) });
      }
    }
    const workers = [openWorker([job]), openWorker([job]), openWorker([job])];
    workers.forEach((worker) => worker.start());
    await eventually('all have run', () => log.length === 15);
    for (const lane of ['a', 'b', 'c']) {
      expect(log.filter((entry) => entry.startsWith(lane))).toEqual([0, 1, 2, 3, 4].map((n) => `${lane}${n}`));
    }
  });

  it('wait while an earlier one waits to be retried', async () => {
    const log: number[] = [];
    const job = defineJob('test.lane', async (_app, { n }: { n: number }) => {
      log.push(n);
      if (n === 1 && log.length === 1) throw new Error('first try');
    });
    await test.app.jobs.enqueue(job, { n: 1 }, { lane: 'x' });
    await test.app.jobs.enqueue(job, { n: 2 }, { lane: 'x' });
    const worker = openWorker([job]);
    await worker.drain();
    expect(log).toEqual([1]);
    clock.advance(1_200);
    await worker.drain();
    expect(log).toEqual([1, 1, 2]);
  });

  it('go on when an earlier one is dead', async () => {
    const log: number[] = [];
    const run = async (_app: App, { n }: { n: number }): Promise<void> => {
      log.push(n);
      if (n === 1) throw new Error('never');
    };
    const job = defineJob('test.lane', run, { retry: { delaysMs: [] } });
    await test.app.jobs.enqueue(job, { n: 1 }, { lane: 'x' });
    await test.app.jobs.enqueue(job, { n: 2 }, { lane: 'x' });
    await openWorker([job]).drain();
    expect(log).toEqual([1, 2]);
  });
});

describe('a kind with its own concurrency', () => {
  it('runs beside the others and never more than so many at once', async () => {
    let running = 0;
    let most = 0;
    const end = gate();
    const hanging = defineJob('test.hanging', () => end.opened);
    const own = defineJob(
      'test.own',
      async () => {
        most = Math.max(most, ++running);
        await new Promise((resolve) => setImmediate(resolve));
        running--;
      },
      { concurrency: 3 },
    );
    for (let n = 0; n < 4; n++) await test.app.jobs.enqueue(hanging, {});
    for (let n = 0; n < 12; n++) await test.app.jobs.enqueue(own, {});
    openWorker([hanging, own], { concurrency: 4 }).start();
    await eventually('only the hanging ones are left', async () => (await allJobs()).length === 4);
    expect(most).toBe(3);
    end.open();
    await eventually('all are done', async () => (await allJobs()).length === 0);
  });
});

describe('a tick of a schedule', () => {
  it('makes one run however many workers enqueue it, also after that run is over', async () => {
    let runs = 0;
    const job = defineJob('test.tick', async () => void runs++);
    const tick = new Date(clock.now());
    const first = await Promise.all(Array.from({ length: 8 }, () => enqueueTick(test.app, { job, cron: '' }, tick)));
    expect(first.filter(Boolean)).toHaveLength(1);
    await openWorker([job]).drain();
    expect(await enqueueTick(test.app, { job, cron: '' }, tick)).toBe(false);
    clock.advance(1_000);
    expect(await enqueueTick(test.app, { job, cron: '' }, new Date(clock.now()))).toBe(true);
    await openWorker([job]).drain();
    expect(runs).toBe(2);
    expect(await listJobs(test.app, {})).toEqual([]);
    const done = await listJobs(test.app, { state: 'done' });
    expect(done.map(({ runAt }) => runAt.getTime() - tick.getTime())).toEqual([1_000, 0]);
    clock.advance(3_600_000);
    expect(await removeExpiredJobs(test.app)).toBe(2);
  });
});

describe('a tick of a schedule whose last run has not ended', () => {
  it('makes no second one, and what waits to be tried again is tried at once', async () => {
    let runs = 0;
    const run = async (): Promise<void> => {
      if (++runs === 1) throw new Error('not yet');
    };
    const job = defineJob('test.slow', run, { retry: { delaysMs: [3_600_000] } });
    const tick = (): Promise<boolean> => enqueueTick(test.app, { job, cron: '' }, new Date(clock.now()));
    expect(await tick()).toBe(true);
    await openWorker([job]).drain();
    expect(runs).toBe(1);
    clock.advance(10_000);
    expect(await tick()).toBe(false);
    await openWorker([job]).drain();
    expect(runs).toBe(2);
    clock.advance(10_000);
    expect(await tick()).toBe(true);
  });
});
