import { rmSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { readDocuments } from '../../commands/read/read-documents.js';
import { type DataCollection, type Engine, openEngine } from '../../index.js';
import { openBudget } from '../../pipeline/budget.js';
import { openStorage } from '../../storage/storage.js';
import { View } from '../../storage/view.js';
import { temporaryDir } from '../transports.js';

const DOCUMENTS = 20_000;

describe('long operations', () => {
  const dataDir = temporaryDir();
  let engine: Engine;
  // oxlint-disable-next-line typescript/no-explicit-any -- documents of any shape
  let items: DataCollection<any>;
  // oxlint-disable-next-line typescript/no-explicit-any -- documents of any shape
  let small: DataCollection<any>;

  beforeAll(async () => {
    engine = openEngine({ dataDir, durability: 'relaxed' });
    items = engine.db('d').collection('items');
    const docs = Array.from({ length: DOCUMENTS }, (_, n) => ({ _id: n, n, group: n % 100, text: `text ${n}` }));
    await items.insertMany(docs);
    small = engine.db('d').collection('small');
    await small.insertMany(docs.slice(0, 60));
  });

  afterAll(async () => {
    await engine.close();
    rmSync(dataDir, { recursive: true, force: true });
  });

  /** How often the event loop came round, and how many short reads were answered, while `long` ran. */
  async function beside(long: () => Promise<unknown>): Promise<{ turns: number; reads: number }> {
    let done = false;
    const counts = { turns: 0, reads: 0 };
    const turn = (): void => {
      counts.turns++;
      if (!done) setImmediate(turn);
    };
    setImmediate(turn);
    const reads = (async () => {
      while (!done) {
        await items.findOne({ _id: counts.reads % DOCUMENTS });
        counts.reads++;
        await new Promise((resolve) => setImmediate(resolve));
      }
    })();
    await long();
    done = true;
    await reads;
    return counts;
  }

  it.each<[string, () => Promise<unknown>]>([
    ['an unindexed count', () => items.countDocuments({ text: { $gt: 'zzz' } })],
    ['an unindexed find that matches nothing', () => items.find({ nothing: 1 }).toArray()],
    ['a sort without an index', () => items.find().sort({ text: -1 }).limit(10).toArray()],
    ['distinct', () => items.distinct('text')],
    ['a $group', () => items.aggregate([{ $group: { _id: '$group', sum: { $sum: '$n' } } }]).toArray()],
    ['an updateMany', () => items.updateMany({ n: { $gte: 0 } }, { $inc: { n: 1 } })],
    ['an updateOne that has to search', () => items.updateOne({ text: 'nowhere' }, { $set: { a: 1 } })],
    ['the building of an index', () => items.createIndex({ text: 1, n: 1 })],
  ])('let others in during %s', async (_name, long) => {
    const { turns, reads } = await beside(long);
    // A scan reads 512 documents at most between two turns, a transaction makes 1024 changes at most.
    expect(turns).toBeGreaterThan(DOCUMENTS / 1024 / 2);
    expect(reads).toBeGreaterThan(5);
  });

  it.each<[string, (heavy: object) => object[], number]>([
    ['a filter', (heavy) => [{ $match: { n: { $lt: 60 }, $expr: { $gt: [heavy, 0] } } }], 60],
    ['a stage', (heavy) => [{ $match: { n: { $lt: 60 } } }, { $project: { x: heavy } }], 60],
  ])('let others in after each document that takes %s long', async (_name, stages, count) => {
    const heavy = { $size: { $range: [0, { $add: [400_000, '$n'] }] } };
    let found: unknown[] = [];
    const { turns } = await beside(async () => {
      found = await small.aggregate(stages(heavy)).toArray();
    });
    expect(found).toHaveLength(count);
    expect(turns).toBeGreaterThan(45);
  });

  it('let others in after each step of each, however many there are at once', async () => {
    const many = 20;
    const { turns } = await beside(() =>
      Promise.all(Array.from({ length: many }, () => items.countDocuments({ nothing: 1 }))),
    );
    expect(turns).toBeGreaterThan((many * DOCUMENTS) / 1024);
  });

  it('let others in after each large document', async () => {
    const large = engine.db('d').collection<{ _id: number; text: string }>('large');
    const text = 'x'.repeat(600_000);
    for (let n = 0; n < 20; n++) await large.insertOne({ _id: n, text });
    let found: unknown[] = [];
    const { turns } = await beside(async () => {
      found = await large.find({}, { projection: { text: 1 } }).toArray();
    });
    expect(found).toHaveLength(20);
    expect(turns).toBeGreaterThan(5);
    await large.drop();
  });

  it('stop when their time is over, with error 50', async () => {
    const filter = { $expr: { $eq: [{ $strLenCP: '$text' }, -1] } };
    await expect(items.find(filter, { maxTimeMS: 1 }).toArray()).rejects.toMatchObject({ code: 50 });
    await expect(items.countDocuments({ nothing: 1 }, { maxTimeMS: 1 })).rejects.toMatchObject({ code: 50 });
    const pipeline = [{ $group: { _id: '$text', n: { $sum: 1 } } }];
    await expect(items.aggregate(pipeline, { maxTimeMS: 1 }).toArray()).rejects.toMatchObject({ code: 50 });
  });

  it('tell what they had changed when their time was over', async () => {
    const update = { q: {}, u: { $set: { touched: true } }, multi: true };
    const reply = await engine.db('d').command({ update: 'items', updates: [update], maxTimeMS: 5 });
    expect(reply['writeErrors']).toMatchObject([{ index: 0, code: 50 }]);
    expect(reply['n']).toBe(await items.countDocuments({ touched: true }));
    expect(reply['n']).toBeGreaterThan(0);
  });

  it('stop in the middle of what they collect for the sort of a pipeline', async () => {
    const storage = openStorage(dataDir, 'relaxed');
    const wanted = { filter: null, sort: { nothing: 1, group: -1 }, skip: 0, limit: 10, fields: null };
    const batches = readDocuments(storage, 'd.items', wanted, openBudget({ maxTimeMS: 1 }), new View(storage));
    await expect(batches.next()).rejects.toMatchObject({ code: 50 });
    await storage.close();
  });

  it('do not count the time between two batches of a cursor', async () => {
    const cursor = items.find({}, { batchSize: 10, maxTimeMS: 2000 });
    await cursor.next();
    expect(await cursor.hasNext()).toBe(true);
    await cursor.close();
    expect(await cursor.next()).toBeNull();
  });

  it('do not take longer by the square of the items of an indexed array or of the fields of a document', async () => {
    const wide = engine.db('d').collection<{ _id: number; tags: number[] }>('wide');
    await wide.createIndex({ tags: 1 });
    const tags = Array.from({ length: 50_000 }, (_, n) => n);
    // As what was stored before index entries had a bound comes back from a backup.
    await expect(wide.insertOne({ _id: 1, tags })).rejects.toMatchObject({ code: 257 });
    await wide.insertMany([{ _id: 1, tags }], { bypassDocumentValidation: true });
    await wide.updateOne({ _id: 1 }, { $set: { tags: tags.map((n) => n + 1) } });
    await expect(wide.updateOne({ _id: 1 }, { $set: { tags: [...tags, -1] } })).rejects.toMatchObject({ code: 257 });
    expect(await wide.countDocuments({ tags: 0 })).toBe(0);
    expect(await wide.countDocuments({ tags: 50_000 })).toBe(1);
    const fields = Object.fromEntries(tags.map((n) => [`f${n}`, n]));
    await wide.updateOne({ _id: 1 }, { $set: fields });
    await wide.updateOne({ _id: 1 }, { $set: Object.fromEntries(tags.map((n) => [`f${n}`, -n])) });
    expect(await wide.findOne({ _id: 1 }, { projection: { f49999: 1 } })).toEqual({ _id: 1, f49999: -49_999 });
    expect(await engine.verify()).toEqual([]);
  });

  it('stop with an error when their collection is dropped, instead of giving half an answer', async () => {
    const doomed = engine.db('d').collection('doomed');
    await doomed.insertMany(Array.from({ length: 500 }, (_, n) => ({ n })));
    const cursor = doomed.find({}, { batchSize: 10 });
    await cursor.next();
    await doomed.drop();
    await expect(cursor.toArray()).rejects.toMatchObject({ code: 175 });
  });
});

describe('TTL indexes', () => {
  it('delete what is over and nothing else, from partial ones too', async () => {
    const dataDir = temporaryDir();
    const engine = openEngine({ dataDir });
    const items = engine.db('d').collection<{ _id: number; at?: unknown; keep?: boolean }>('items');
    await items.createIndex({ at: 1 }, { expireAfterSeconds: 60, partialFilterExpression: { keep: false } });
    const now = new Date('2026-01-01T00:10:00Z');
    const old = new Date('2026-01-01T00:08:00Z');
    const fresh = new Date('2026-01-01T00:09:30Z');
    await items.insertMany([
      { _id: 1, at: old, keep: false },
      { _id: 2, at: fresh, keep: false },
      { _id: 3, at: old, keep: true },
      { _id: 4, at: 'old', keep: false },
      { _id: 5, keep: false },
      { _id: 6, at: [fresh, old], keep: false },
    ]);
    expect(await engine.expire(now)).toBe(2);
    expect(await items.distinct('_id')).toEqual([2, 3, 4, 5]);
    await engine.db('d').command({ collMod: 'items', index: { name: 'at_1', expireAfterSeconds: 10 } });
    expect(await engine.expire(now)).toBe(1);
    expect(await engine.verify()).toEqual([]);
    await engine.close();
    rmSync(dataDir, { recursive: true, force: true });
  });
});
