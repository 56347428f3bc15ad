import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { beginRestore } from '../../../src/platform/database/restore-mark.js';
import { claimInTurn, claimJobs, type ClaimRequest } from '../../../src/platform/jobs/claim-jobs.js';
import { jobStore, type JobRecord } from '../../../src/platform/jobs/job.js';
import { listenToCommands, type SeenCommand } from '../../helpers/command-log.js';
import { eventually } from '../../helpers/eventually.js';
import { defineJob, gate, openJobWorld, type Definition, type JobWorld } from '../../helpers/job-world.js';

let world: JobWorld;
beforeEach(async () => {
  world = await openJobWorld();
});
afterEach(() => world.close());

const enqueue: JobWorld['test']['app']['jobs']['enqueue'] = (...given) => world.test.app.jobs.enqueue(...given);
const idle = defineJob('test.claimed', async () => undefined);
const request = (more: Partial<ClaimRequest> = {}): ClaimRequest => ({
  ...{ workerId: 'w', pool: 'shared', names: [idle.name], leaseMs: 15_000, limit: 1, crowded: false },
  ...more,
});
/** Enqueues jobs that are due one after the other; `n` of each says which it is. */
async function enqueueMany(count: number, optionsOf: (n: number) => object = () => ({})): Promise<void> {
  for (let n = 0; n < count; n++) {
    await enqueue(idle, { n }, { runAt: new Date(world.clock.now() - 10_000 + n), ...optionsOf(n) });
  }
}
/** Which jobs a worker gets. */
async function claim(more: Partial<ClaimRequest> = {}): Promise<number[]> {
  const claimed: number[] = [];
  await claimJobs(world.test.app, request(more), ({ payload }) => void claimed.push(payload.n as number));
  return claimed;
}

describe('a job that is leased', () => {
  it('says by whom and until when, and that it was tried once more', async () => {
    const enqueued = world.clock.now();
    await enqueue(idle, {}, { lane: 'x' });
    world.clock.advance(500);
    const leased: JobRecord[] = [];
    await claimJobs(world.test.app, request({ workerId: 'me' }), (job) => void leased.push(job));
    const now = enqueued + 500;
    expect(leased).toMatchObject([
      {
        state: 'running',
        workerId: 'me',
        leaseUntil: new Date(now + 15_000),
        updatedAt: new Date(now),
        createdAt: new Date(enqueued),
        heldLane: 'x',
        fence: 1,
        attempts: 1,
      },
    ]);
    expect(await world.allJobs()).toEqual(leased);
  });

  it('is one that is due, of a kind and a pool that the worker has', async () => {
    await enqueue(idle, { n: 1 }, { runAt: new Date(world.clock.now() + 1) });
    await enqueue(
      defineJob('test.other', async () => undefined),
      { n: 2 },
    );
    await enqueue({ ...idle, concurrency: 1 }, { n: 3 });
    await enqueue(idle, { n: 4 });
    expect(await claim({ limit: 10 })).toEqual([4]);
    expect(await claim({ limit: 10, pool: idle.name })).toEqual([3]);
  });

  it.each([{}, { lane: 'x' }])('is none when the database cannot note it, which is told (%o)', async (options) => {
    await enqueue(idle, {}, options);
    const app = world.appWithout((method) => method === 'findOneAndUpdate');
    const begun = (): void => expect.unreachable('nothing was leased');
    await expect(claimJobs(app, request(), begun)).rejects.toThrow('the database is away');
    expect(await world.allJobs()).toMatchObject([{ state: 'queued', attempts: 0 }]);
  });

  it('is never one more than the worker has room for, the most urgent first', async () => {
    await enqueueMany(3);
    await enqueueMany(3, (n) => ({ priority: 0, runAt: new Date(world.clock.now() - n) }));
    expect(await claim({ limit: 4 })).toEqual([2, 1, 0, 0]);
    expect(await claim({ limit: 0 })).toEqual([]);
    expect(await claim({ limit: 10 })).toEqual([1, 2]);
  });
});

describe('jobs of a lane', () => {
  it('do not keep others waiting, however many of them are due before', async () => {
    await enqueueMany(80, (n) => (n < 79 ? { lane: 'long' } : {}));
    expect(await claim({ limit: 2 })).toEqual([0, 79]);
    expect(await claim({ limit: 2 })).toEqual([]);
  });

  it('take no place of those behind them while their lane is busy', async () => {
    await enqueueMany(4, (n) => (n < 3 ? { lane: 'x' } : {}));
    expect(await claim()).toEqual([0]);
    expect(await claim()).toEqual([3]);
  });

  it('are not tried two at once, as either could be first then', async () => {
    const tries = async (): Promise<number> => {
      const commands = listenToCommands();
      await claim({ limit: 10 });
      commands.stop();
      return commands.named('findAndModify').length;
    };
    await enqueueMany(3, () => ({ lane: 'x' }));
    expect(await tries()).toBe(1);
    const failed = { $set: { state: 'queued' as const, runAt: new Date(world.clock.now()) } };
    await jobStore(world.test.app).updateOne({ state: 'running' }, failed);
    expect(await tries()).toBe(1);
    expect(await world.allJobs()).toMatchObject([{ payload: { n: 0 }, attempts: 2 }, { attempts: 0 }, { attempts: 0 }]);
  });

  it('are leased one at a time, each of another lane', async () => {
    await enqueueMany(6, (n) => ({ lane: `lane ${n % 3}` }));
    expect(await claim({ limit: 10 })).toEqual([0, 1, 2]);
    expect(await claim({ limit: 10 })).toEqual([]);
  });

  it('begin with the one that was tried before, though another is due earlier', async () => {
    await enqueueMany(2, () => ({ lane: 'x' }));
    const failing = defineJob(idle.name, () => Promise.reject(new Error('not yet')));
    await world.openWorker([failing]).drain();
    const [tried] = (await world.allJobs()).filter(({ attempts }) => attempts === 1);
    expect(tried!.payload.n).toBe(0);
    await jobStore(world.test.app).updateOne({ _id: tried!._id }, { $set: { runAt: new Date(world.clock.now()) } });
    expect(await claim({ limit: 10 })).toEqual([0]);
  });
});

describe('several workers at one queue', () => {
  it('choose among more than the first jobs once others were faster', async () => {
    await enqueueMany(30);
    const chosen: number[] = [];
    for (let n = 0; n < 8; n++) chosen.push(...(await claim({ crowded: true })));
    expect(new Set(chosen).size).toBe(8);
    expect(chosen).not.toEqual([0, 1, 2, 3, 4, 5, 6, 7]);
    expect(chosen).not.toEqual([29, 28, 27, 26, 25, 24, 23, 22]);
  });

  it('take the first ones as long as nobody was', async () => {
    await enqueueMany(5);
    expect([...(await claim()), ...(await claim({ limit: 2 }))]).toEqual([0, 1, 2]);
    expect(await claimJobs(world.test.app, request(), () => undefined)).toBe(false);
  });
});

/** The looks for work among these commands. */
const looksAmong = (seen: readonly SeenCommand[]): SeenCommand[] =>
  seen.filter(({ body }) => (body.filter as { state?: string } | undefined)?.state === 'queued');

describe('a worker with nothing to do', () => {
  it('asks for all that it may run by one look', async () => {
    await enqueue(idle, { n: 1 });
    expect(await claim()).toEqual([1]);
    await enqueue(idle, {}, { runAt: new Date(world.clock.now() + 1) });
    await enqueue(
      defineJob('test.foreign', async () => undefined, { concurrency: 1 }),
      {},
    );
    const own = defineJob('test.own', async () => undefined, { concurrency: 1 });
    const commands = listenToCommands();
    expect(await world.openWorker([idle, own]).drain()).toBe(0);
    commands.stop();
    expect(looksAmong(commands.seen)).toHaveLength(1);
  });
});

describe('a worker beside a restore', () => {
  it('takes nothing from a store that is half of something', async () => {
    await beginRestore(world.test.app.db);
    await enqueue(idle, {});
    expect(await world.openWorker([idle]).drain()).toBe(0);
    expect(await world.allJobs()).toMatchObject([{ state: 'queued', attempts: 0 }]);
  });
});

describe('a worker that waits', () => {
  /** The moments at which a worker looks for work, by a clock that goes on only when it has nothing to do. */
  async function watchLooks(definitions: Definition[], count: number): Promise<number[]> {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'Date'] });
    try {
      const looks: number[] = [];
      const app = world.appWithout((method, filter) => {
        if (method === 'findOne' && Object.hasOwn(filter as object, 'pool')) looks.push(Date.now());
        return false;
      });
      const worker = world.openWorker(definitions, { idleMs: 1_000 }, app);
      worker.start();
      for (let step = 0; looks.length < count; step++) {
        if (step > 1_000) throw new Error('it looks no more');
        const seen = looks.length;
        for (let turn = 0; turn < 20 && looks.length === seen; turn++) {
          await new Promise((resolve) => setImmediate(resolve));
        }
        if (looks.length === seen) vi.advanceTimersToNextTimer();
      }
      await worker.stop(0);
      return looks;
    } finally {
      vi.useRealTimers();
    }
  }
  const pausesOf = (looks: readonly number[]): number[] => looks.slice(1).map((look, at) => look - looks[at]!);

  it('looks again after a moment, then less and less often, and about once a second in the end', async () => {
    const pauses = pausesOf(await watchLooks([idle], 9));
    for (const [at, usual] of [40, 80, 160, 320, 640, 1_000, 1_000, 1_000].entries()) {
      expect(pauses[at]).toBeGreaterThanOrEqual(usual * 0.7);
      expect(pauses[at]).toBeLessThanOrEqual(usual * 1.3);
    }
  });
});

describe('a worker that is full', () => {
  it('does not look for more', async () => {
    const end = gate();
    let runs = 0;
    const hanging = defineJob('test.hanging', async () => {
      runs++;
      await end.opened;
    });
    for (let n = 0; n < 3; n++) await enqueue(hanging, {});
    const worker = world.openWorker([hanging], { concurrency: 2 });
    worker.start();
    await eventually('it is full', () => runs === 2);
    const commands = listenToCommands();
    expect(await worker.drain()).toBe(0);
    commands.stop();
    expect(looksAmong(commands.seen)).toEqual([]);
    end.open();
    await eventually('all have run', () => runs === 3);
  });
});

describe('a kind whose parties take turns', () => {
  const ran: string[] = [];
  const inTurn = (run: Definition['run'], more: Partial<Definition> = {}): Definition =>
    defineJob('test.turns', run, { concurrency: 1, perParty: 5, ...more });
  const noted = inTurn(async (_app, { party }: { party: string }) => void ran.push(party));
  const ask = async (parties: string, options: object = {}): Promise<void> => {
    for (const party of parties) await enqueue(noted, { party }, { party, ...options });
  };
  beforeEach(() => void ran.splice(0));

  it('serves each in its turn, however many jobs one has', async () => {
    await ask('bbbbac');
    await world.openWorker([noted]).drain();
    expect(ran.join('')).toBe('abcbbb');
  });

  it('goes on after the one that was served last', async () => {
    await ask('aabb');
    const worker = world.openWorker([noted]);
    await worker.drain();
    await ask('abc');
    await worker.drain();
    expect(ran.join('')).toBe('ababcab');
  });

  it('serves what is urgent first, whoever has it', async () => {
    await ask('ab');
    await ask('zz', { priority: 0 });
    await world.openWorker([noted]).drain();
    expect(ran.join('')).toBe('zzab');
  });

  it('runs of one party its earliest first', async () => {
    const order: number[] = [];
    const job = inTurn(async (_app, { n }: { n: number }) => void order.push(n));
    for (const n of [3, 1, 2]) await enqueue(job, { n }, { party: 'a', runAt: new Date(world.clock.now() - 10 + n) });
    await world.openWorker([job]).drain();
    expect(order).toEqual([1, 2, 3]);
  });

  it('runs at most its share of one party at once, and no more in all than its concurrency', async () => {
    const end = gate();
    const hanging = inTurn(
      async (_app, { party }: { party: string }) => {
        ran.push(party);
        await end.opened;
      },
      { concurrency: 5, perParty: 2 },
    );
    for (const party of 'aaaabbbcc') await enqueue(hanging, { party }, { party });
    const worker = world.openWorker([hanging]);
    worker.start();
    await eventually('as many run as may', () => ran.length >= 5);
    expect(await worker.drain()).toBe(0);
    expect(ran.join('')).toBe('abcab');
    end.open();
    await eventually('all have run', () => ran.length === 9);
    expect(ran.slice(5).sort().join('')).toBe('aabc');
  });

  it('passes over the parties that have their share already', async () => {
    await ask('aab');
    const served: string[] = [];
    const turn = (after: string, full: string[]): Promise<string | null> =>
      claimInTurn(
        world.test.app,
        request({ pool: noted.name, names: [noted.name] }),
        { after, full: new Set(full) },
        ({ party }) => void served.push(party!),
      );
    expect(await turn('', ['a'])).toBe('b');
    expect(await turn('b', ['a'])).toBeNull();
    expect(await turn('b', [])).toBe('a');
    expect(served).toEqual(['b', 'a']);
  });
});
