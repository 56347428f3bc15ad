import { describe, expect, it } from 'vitest';
import { openEnginePerTest } from '../engine-per-test.js';

const own = openEnginePerTest();

const things = { db: 'd', collection: 'things' };
const stored = () => own.engine.db('d').collection<{ _id: number; batch: number; at: number }>('things');
const numbered = (from: number, count: number, more: (n: number) => object = () => ({})): object[] =>
  Array.from({ length: count }, (_, n) => ({ _id: from + n, ...more(from + n) }));

describe('documents inserted together', () => {
  it('are all there', async () => {
    await own.engine.insertTogether(things, numbered(0, 1000));
    expect(await stored().countDocuments()).toBe(1000);
    expect(await own.engine.verify()).toEqual([]);
  });

  it.each([
    ['a stored one', 7],
    ['another of them', 101],
  ])('are none of them there when one has the unique value of %s', async (_whose, code) => {
    await stored().createIndex({ code: 1 }, { unique: true });
    await own.engine.insertTogether(things, [{ _id: -1, code: 7 }]);
    const documents = [...numbered(100, 50, (n) => ({ code: n })), { _id: 999, code }];
    await expect(own.engine.insertTogether(things, documents)).rejects.toMatchObject({
      code: 11_000,
      keyPattern: { code: 1 },
    });
    expect(await stored().countDocuments()).toBe(1);
    expect(await own.engine.verify()).toEqual([]);
  });

  it('do not disturb what others write in the same turn when they are refused', async () => {
    await own.engine.insertTogether(things, [{ _id: 1 }]);
    const refused = own.engine.insertTogether(things, numbered(0, 100));
    const other = stored().insertOne({ _id: 5000, batch: 0, at: 0 });
    await expect(refused).rejects.toMatchObject({ code: 11_000 });
    await other;
    expect((await stored().find().toArray()).map(({ _id }) => _id)).toEqual([1, 5000]);
  });

  it('are refused when they take too many index entries for one transaction', async () => {
    await stored().createIndex({ tags: 1 });
    const tags = (n: number) => ({ tags: Array.from({ length: 1000 }, (_, tag) => n * 1000 + tag) });
    await expect(own.engine.insertTogether(things, numbered(0, 10, tags))).rejects.toMatchObject({ code: 257 });
    await own.engine.insertTogether(things, numbered(0, 9, tags));
    expect(await stored().countDocuments()).toBe(9);
  });
});

describe('a command that takes several turns', () => {
  const BATCH = 100;
  /**
   * Documents of one batch lie far apart in the order of `at`, so that a scan by it takes many turns from one to the
   * next.
   */
  const scattered = (batch: number) => (n: number) => ({ batch, at: (n % BATCH) * 1000 + Math.floor(n / BATCH) });
  const insertBatch = (batch: number): Promise<void> =>
    own.engine.insertTogether(things, numbered(batch * BATCH, BATCH, scattered(batch)));

  const reads: Record<string, () => Promise<number[]>> = {
    'a list': async () => {
      const found = await stored()
        .find({ at: { $gte: 0 } })
        .sort({ at: 1 })
        .batchSize(1_000_000)
        .toArray();
      return tally(found.map((document) => document.batch));
    },
    'a list sorted without an index': async () => {
      const found = await stored()
        .find({ at: { $gte: 0 } })
        .sort({ batch: -1 })
        .batchSize(1_000_000)
        .toArray();
      return tally(found.map((document) => document.batch));
    },
    'a count that reads documents': async () => [
      await stored().countDocuments({ at: { $gte: 0 }, batch: { $mod: [1, 0] } }),
    ],
    'an aggregation': async () =>
      (
        await stored()
          .aggregate<{ n: number }>([{ $match: { at: { $gte: 0 } } }, { $group: { _id: '$batch', n: { $sum: 1 } } }])
          .toArray()
      ).map(({ n }) => n),
    'a join of many rounds': async () => {
      const joined = await own.engine
        .db('d')
        .collection('places')
        .aggregate<{ found: { batch: number }[] }>([
          { $lookup: { from: 'things', localField: '_id', foreignField: 'at', as: 'found' } },
        ])
        .toArray();
      return tally(joined.flatMap(({ found }) => found.map(({ batch }) => batch)));
    },
  };

  function tally(batches: readonly number[]): number[] {
    const counts = new Map<number, number>();
    for (const batch of batches) counts.set(batch, (counts.get(batch) ?? 0) + 1);
    return [...counts.values()];
  }

  it.each(Object.entries(reads))('sees every batch as a whole: %s', async (_name, read) => {
    await stored().createIndex({ at: 1 });
    for (let batch = 0; batch < 60; batch++) await insertBatch(batch);
    if (_name.startsWith('a join')) {
      const places = own.engine.db('d').collection<{ _id: number }>('places');
      await places.insertMany(
        Array.from({ length: BATCH * 100 }, (_, n) => ({ _id: Math.floor(n / 100) * 1000 + (n % 100) })),
      );
    }
    let batches = 60;
    for (let round = 0; round < 5; round++) {
      let reading = true;
      const answer = read().finally(() => (reading = false));
      for (let turn = 0; turn < 90 && reading; turn++) {
        await new Promise((resolve) => setImmediate(resolve));
        if (turn % 6 > 0) continue;
        await insertBatch(batches++);
      }
      for (const count of await answer) expect(count % BATCH).toBe(0);
    }
    expect(own.engine.snapshots()).toEqual([]);
  });
});
