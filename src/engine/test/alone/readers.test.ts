import { readdirSync, readFileSync, rmSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { type Core } from '../../commands/command.js';
import { Cursors } from '../../commands/read/cursors.js';
import { Transactions } from '../../commands/transactions.js';
import { runCommand } from '../../commands/index.js';
import { DATA_FILE, type DataCollection, type Engine, openEngine } from '../../index.js';
import { ReaderPool } from '../../readers/reader-pool.js';
import { openStorage } from '../../storage/storage.js';
import { eventually } from '../helpers/eventually.js';
import { temporaryDir } from '../transports.js';

// oxlint-disable-next-line typescript/no-explicit-any -- documents of any shape
type Items = DataCollection<any>;

const DOCUMENTS = 20_000;
const GROUPS = 10;
const PER_GROUP = [{ $group: { _id: '$group', count: { $sum: 1 } } }, { $sort: { _id: 1 } }];
/**
 * Keeps its thread busy with the few documents of `wide`, which have long lists, without a look at messages or the
 * clock.
 */
const STUCK = [{ $sort: { list: -1 } }, { $count: 'n' }];
/** Looks at messages and the clock, but would take hours. */
const EACH_FOR_EACH = {
  $lookup: { from: 'items', pipeline: [{ $match: { $expr: { $eq: ['$n', -1] } } }], as: 'none' },
};
const ENDLESS = [{ $project: { n: 1 } }, EACH_FOR_EACH, EACH_FOR_EACH];

describe('reader threads', () => {
  const dataDir = temporaryDir();
  let threaded: Engine;
  let items: Items;
  /** The same documents, read by the main thread alone. */
  let here: Items;
  let alone: Engine;
  const closers: (() => Promise<unknown>)[] = [];

  function open(readerThreads: number): { engine: Engine; items: Items } {
    const engine = openEngine({ dataDir, durability: 'relaxed', readerThreads });
    closers.push(() => engine.close());
    return { engine, items: engine.db('d').collection('items') };
  }

  beforeAll(async () => {
    ({ engine: threaded, items } = open(1));
    ({ engine: alone, items: here } = open(0));
    const texts = Array.from({ length: DOCUMENTS }, (_, n) => ({
      _id: n,
      n,
      group: n % GROUPS,
      text: `text ${n % 997}`,
    }));
    await here.insertMany(texts);
    const list = Array.from({ length: 200_000 }, (_, n) => n);
    for (let n = 0; n < 12; n++)
      await alone.db('d').collection<{ _id: number; list: number[] }>('wide').insertOne({ _id: n, list });
  });

  afterAll(async () => {
    for (const close of closers.splice(0)) await close();
    rmSync(dataDir, { recursive: true, force: true });
  });

  it('start with the first read that takes long, and not before', async () => {
    await items.findOne({ _id: 7 });
    await items.find({ n: { $lt: 50 } }, { limit: 20 }).toArray();
    await items.updateMany({ group: 1 }, { $set: { seen: true } });
    expect(threaded.stats().readerThreadsStarted).toBe(0);
    await items.aggregate(PER_GROUP).toArray();
    await items.aggregate(PER_GROUP).toArray();
    expect(threaded.stats().readerThreadsStarted).toBe(1);
  });

  it.skipIf(process.platform !== 'linux')('leave the processors to the main thread where there are few', async () => {
    await items.aggregate(PER_GROUP).toArray();
    const niceness = (task: string): number =>
      Number(readFileSync(`/proc/self/task/${task}/stat`, 'latin1').split(') ')[1]!.split(' ')[16]);
    const others = readdirSync('/proc/self/task').filter((task) => Number(task) !== process.pid);
    const main = niceness(String(process.pid));
    expect(others.map(niceness).filter((nice) => nice > main)).toHaveLength(1);
  });

  const FEW = { $match: { _id: { $in: [1, 2, 3, 40] } } };

  it.each<[string, number, string, object[]]>([
    ['groups of few documents', 0, 'items', [FEW, { $group: { _id: '$group', n: { $sum: '$n' } } }]],
    [
      'a computed field, sorted',
      0,
      'items',
      [FEW, { $sort: { text: -1 } }, { $set: { twice: { $multiply: ['$n', 2] } } }, { $limit: 3 }],
    ],
    ['groups of all documents', 1, 'items', PER_GROUP],
    ['an operator that may take long', 1, 'items', [FEW, { $set: { all: { $range: [0, '$n'] } } }]],
    ['a stage that may', 1, 'items', [FEW, { $facet: { all: [{ $count: 'n' }] } }]],
    ['a pattern in a later stage', 1, 'items', [FEW, { $set: { x: 1 } }, { $match: { text: /9/ } }]],
    ['one large document', 1, 'wide', [{ $match: { _id: 1 } }, { $group: { _id: null, n: { $sum: '$list' } } }]],
    ['one large document, sorted', 1, 'wide', [{ $match: { _id: { $lt: 2 } } }, { $sort: { list: 1 } }, { $limit: 1 }]],
  ])('begin no aggregation that is cheap: %s', async (_name, threads, collection, pipeline) => {
    const { engine } = open(1);
    const found = await engine.db('d').collection(collection).aggregate(pipeline).toArray();
    expect(found).toEqual(await alone.db('d').collection(collection).aggregate(pipeline).toArray());
    expect(engine.stats().readerThreadsStarted).toBe(threads);
    await engine.close();
  });

  it.each<[string, (items: Items) => Promise<unknown>]>([
    ['an aggregation', (items) => items.aggregate(PER_GROUP).toArray()],
    ['a sort that no index has', (items) => items.find().sort({ text: -1, n: 1 }).limit(5).toArray()],
    ['a count that no index answers', (items) => items.countDocuments({ text: { $lt: 'text 5' } })],
    ['distinct values', (items) => items.distinct('text')],
    ['a pattern', (items) => items.find({ text: /9{2}/ }).sort({ _id: 1 }).toArray()],
    ['all documents', (items) => items.find().batchSize(700).toArray()],
    [
      'raw documents',
      async (items) =>
        Buffer.concat((await items.find({}, { raw: true }).batchSize(700).toArray()) as never).toString('base64'),
    ],
    [
      'a refusal',
      (items) =>
        items
          .aggregate([{ $noStage: 1 }])
          .toArray()
          .catch(({ code, message }: Error & { code: number }) => ({ code, message })),
    ],
  ])('answer %s as the main thread does', async (_name, read) => {
    expect(await read(items)).toEqual(await read(here));
  });

  it('see every write that was acknowledged before', async () => {
    for (let n = 0; n < 30; n++) {
      await items.updateOne({ _id: n }, { $set: { group: 'new' } });
      expect(await items.aggregate([{ $match: { group: 'new' } }, { $count: 'n' }]).toArray()).toEqual([{ n: n + 1 }]);
      if (n % 10 > 0) continue;
      const fresh = threaded.db('d').collection(`fresh-${n}`);
      await fresh.insertMany([{ n }, { n }]);
      expect(await fresh.aggregate([{ $count: 'n' }]).toArray()).toEqual([{ n: 2 }]);
    }
    await items.updateMany({ group: 'new' }, { $set: { group: 0 } });
  });

  it('keep a cursor until it has been read or closed', async () => {
    const cursor = items.aggregate([{ $match: {} }]).batchSize(1000);
    for (let n = 0; n < 2500; n++) expect(await cursor.next()).toMatchObject({ n });
    await cursor.close();
    expect(await cursor.next()).toBeNull();
    expect(
      await items
        .aggregate([{ $match: {} }])
        .batchSize(1000)
        .toArray(),
    ).toHaveLength(DOCUMENTS);
  });

  it('break off what nobody waits for any more, and go on with the rest', async () => {
    const before = threaded.stats().readerThreadsStarted;
    const gone = new AbortController();
    const { signal } = gone;
    const left = Array.from({ length: 4 }, () => items.aggregate(ENDLESS, { signal }).toArray());
    await new Promise((resolve) => setImmediate(resolve));
    gone.abort();
    for (const reading of left) await expect(reading).rejects.toMatchObject({ code: 11601 });
    await expect(items.aggregate(PER_GROUP, { signal }).toArray()).rejects.toMatchObject({ code: 11601 });
    expect(await items.aggregate(PER_GROUP).toArray()).toHaveLength(GROUPS);
    expect(threaded.stats().readerThreadsStarted).toBe(before);
  });

  it('tell callers to come back when too many reads wait, and others not', async () => {
    const quick = [{ $limit: 1 }, { $sample: { size: 1 } }];
    const all = Array.from({ length: 600 }, () => items.aggregate(quick).toArray());
    const other = threaded.db('d').collection('others_1').aggregate(quick).toArray();
    const outcomes = await Promise.allSettled(all);
    const refused = outcomes.filter((outcome) => outcome.status === 'rejected');
    expect(refused.length).toBeGreaterThan(0);
    expect(refused.length).toBeLessThan(110);
    for (const { reason } of refused) expect(reason).toMatchObject({ code: 365 });
    expect(await other).toEqual([]);
  });

  it.each([1, 2, 10])(
    'share places and turns by owner: one with %i collections keeps no other waiting',
    async (count) => {
      const own = (at: number): Items => threaded.db('d').collection(`documents_a_${at}`);
      const others: Items = threaded.db('d').collection('documents_b_1');
      const some = Array.from({ length: 2_000 }, (_, n) => ({ _id: n, n, group: n % GROUPS }));
      for (let at = 0; at < count; at++)
        await own(at)
          .insertMany(some, { ordered: false })
          .catch(() => undefined);
      await others.insertMany(some).catch(() => undefined);
      let done = 0;
      let tellFirst = (): void => undefined;
      const firstDone = new Promise<void>((resolve) => (tellFirst = resolve));
      const all = Array.from({ length: 60 }, async (_, at) => {
        await own(at % count)
          .aggregate(PER_GROUP)
          .toArray();
        done++;
        tellFirst();
      });
      // Whoever looks only now and then finds all of them done on a quick machine.
      await firstDone;
      const before = done;
      await others.aggregate(PER_GROUP).toArray();
      const after = done;
      await Promise.all(all);
      // Those that were beside it in its thread, and those whose answers were on their way; behind all it would be 60.
      expect(after - before).toBeLessThan(40);
      expect(after).toBeLessThan(60);
    },
  );

  it('end with their engine, in the middle of a read', async () => {
    const { engine, items } = open(1);
    const refused = expect(items.aggregate(ENDLESS).toArray()).rejects.toThrow('the engine is closed');
    await engine.close();
    await refused;
  });

  describe('that a command keeps too long', () => {
    const pools: (() => Promise<void>)[] = [];

    afterEach(async () => {
      for (const close of pools.splice(0)) await close();
    });

    /** A thread over the same data file, with settings that an engine does not let one choose. */
    async function openPool(settings: {
      graceMs?: number;
      heapMb?: number;
    }): Promise<{ pool: ReaderPool; core: Core }> {
      const storage = openStorage(dataDir, 'relaxed');
      const { graceMs, heapMb } = settings;
      const pool = new ReaderPool({ dataDir, durability: 'relaxed', ...(heapMb && { heapMb }) }, 1, graceMs);
      pools.push(async () => {
        await pool.close();
        await storage.close();
      });
      const core = {
        storage,
        cursors: new Cursors(),
        transactions: new Transactions(),
        startedAt: 0,
        commandCounts: new Map<string, number>(),
        readers: pool,
      };
      await aggregate(core, PER_GROUP);
      expect(pool.started).toBe(1);
      return { pool, core };
    }

    async function aggregate(
      core: Core,
      pipeline: object[],
      more: object = {},
      signal?: AbortSignal,
    ): Promise<unknown[]> {
      const body = { aggregate: pipeline === STUCK ? 'wide' : 'items', pipeline, cursor: {}, ...more };
      const { cursor } = (await runCommand({ core, db: 'd', signal }, body)) as { cursor: { firstBatch: unknown[] } };
      return cursor.firstBatch;
    }

    it('are ended and replaced at its time limit', async () => {
      const { pool, core } = await openPool({ graceMs: 0 });
      await expect(aggregate(core, STUCK, { maxTimeMS: 1 })).rejects.toMatchObject({ code: 50 });
      expect(await aggregate(core, PER_GROUP)).toHaveLength(GROUPS);
      expect(pool.started).toBe(2);
    });

    it('are ended and replaced when its client has left', async () => {
      const { pool, core } = await openPool({ graceMs: 0 });
      const gone = new AbortController();
      const reading = aggregate(core, STUCK, {}, gone.signal);
      // By then the thread has been told of it.
      await new Promise((resolve) => setImmediate(resolve));
      gone.abort();
      await expect(reading).rejects.toMatchObject({ code: 11601 });
      expect(await aggregate(core, PER_GROUP)).toHaveLength(GROUPS);
      expect(pool.started).toBe(2);
    });

    it('begin anew with whatever else ran there', async () => {
      const { pool, core } = await openPool({ graceMs: 0 });
      const stuck = expect(aggregate(core, STUCK, { maxTimeMS: 1 })).rejects.toMatchObject({ code: 50 });
      const [groups, count] = await Promise.all([aggregate(core, PER_GROUP), aggregate(core, [{ $count: 'n' }])]);
      await stuck;
      expect(groups).toHaveLength(GROUPS);
      expect(count).toHaveLength(1);
      expect(pool.started).toBe(2);
    });

    it('refuse what needs more memory than they have, and work again afterwards', async () => {
      const { pool, core } = await openPool({ heapMb: 24 });
      const hungry = [
        { $group: { _id: { n: '$n', m: { $range: [0, 60] } }, all: { $push: '$$ROOT' } } },
        { $count: 'n' },
      ];
      await expect(aggregate(core, hungry)).rejects.toMatchObject({ code: 146 });
      expect(await aggregate(core, PER_GROUP)).toHaveLength(GROUPS);
      expect(pool.started).toBe(2);
    });

    it('leave neither readers nor space behind, with writes beside', async () => {
      const { pool, core } = await openPool({ graceMs: 0 });
      const write = async (n: number): Promise<void> => {
        await here.updateMany({ n: { $lt: 5000 } }, { $set: { text: `text ${100 + n}` } });
      };
      const round = async (n: number): Promise<void> => {
        await eventually('nothing is read', () => snapshots() === 0);
        // It reads, and may hold a view of the data, when its thread is ended.
        const gone = new AbortController();
        const beside = aggregate(core, ENDLESS, {}, gone.signal).catch(() => undefined);
        await eventually('it reads', () => snapshots() > 0);
        const stuck = expect(aggregate(core, STUCK, { maxTimeMS: 1 })).rejects.toMatchObject({ code: 50 });
        await write(n);
        await stuck;
        gone.abort();
        await beside;
        await write(n + 50);
      };
      /** As LMDB lists them: process, thread, transaction. */
      const snapshots = (): number => {
        const { store } = core.storage.environment;
        store.resetReadTxn();
        return [...store.readerList().matchAll(/^ *\d+ +[0-9a-f]+ +\d+ *$/gm)].length;
      };
      const size = (): number => statSync(join(dataDir, DATA_FILE)).size;
      await round(1);
      const before = size();
      for (let n = 2; n < 12; n++) await round(n);
      expect(pool.started).toBeGreaterThan(4);
      // Readers that stayed would keep what each of the twenty writes replaced, half a megabyte; on a busy machine one
      // that is about to be ended may keep that of some of them.
      expect(size() - before).toBeLessThan(5_000_000);
      await eventually('no snapshot is left', () => snapshots() === 0);
    });
  });
});
