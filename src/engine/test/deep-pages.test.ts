import { rmSync } from 'node:fs';
import type { Document } from 'bson';
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type DataCollection, type DataDb, type Engine, openEngine } from '../index.js';
import { temporaryDir } from './transports.js';
import { openSeed } from './helpers/seed.js';

const SEED = openSeed('deep pages');
const DOCUMENTS = 4000;

describe('a page far behind', () => {
  const dataDir = temporaryDir();
  let engine: Engine;
  let db: DataDb;
  // eslint-disable-next-line @typescript-eslint/no-explicit-any -- documents of any shape
  let items: DataCollection<any>;

  beforeAll(async () => {
    engine = openEngine({ dataDir, durability: 'relaxed' });
    db = engine.db('pages');
    items = db.collection('items');
    await items.createIndexes([
      { key: { cat: 1, n: -1, _id: -1 }, name: 'cat' },
      { key: { n: -1, _id: -1 }, name: 'n', partialFilterExpression: { isDeleted: false } },
    ]);
    const docs = Array.from({ length: DOCUMENTS }, (_, n) => ({
      _id: n,
      cat: `c${String(n % 3)}`,
      n: Math.floor((n * 7919) % 1000),
      isDeleted: n % 5 === 0,
      text: 'x'.repeat(n % 200),
    }));
    await items.insertMany(docs);
  });

  afterAll(async () => {
    await engine.close();
    rmSync(dataDir, { recursive: true, force: true });
  });

  async function readsOf(find: Document): Promise<number> {
    const { executionStats } = (await db.command({ explain: { find: 'items', ...find } })) as unknown as {
      executionStats: { totalKeysExamined: number; totalDocsExamined: number };
    };
    return Math.max(executionStats.totalKeysExamined, executionStats.totalDocsExamined);
  }

  it('has the documents that the whole list has there, and reads no others where an index has the order', async () => {
    const filters: Document[] = [
      {},
      { isDeleted: false },
      { cat: 'c1' },
      { cat: { $in: ['c0', 'c2'] } },
      { cat: 'c2', n: { $gte: 200 } },
      { _id: { $gte: 500 } },
    ];
    const sorts: Record<string, 1 | -1>[] = [{ n: -1, _id: -1 }, { n: 1, _id: 1 }, { _id: 1 }, { _id: -1 }, {}];
    let deep = 0;
    await fc.assert(
      fc.asyncProperty(
        fc.constantFrom(...filters),
        fc.constantFrom(...sorts),
        fc.integer({ min: 60, max: DOCUMENTS + 100 }),
        fc.integer({ min: 1, max: 40 }),
        fc.boolean(),
        async (filter, sort, skip, limit, writes) => {
          if (writes) await items.updateOne({ _id: skip % DOCUMENTS }, { $set: { text: 'changed' } });
          const options = { sort, projection: { _id: 1 } };
          const all = await items.find(filter, options).toArray();
          const page = await items.find(filter, { ...options, skip, limit }).toArray();
          expect(page).toEqual(all.slice(skip, skip + limit));
          // Some of these have no index in the wanted order.
          const reads = await readsOf({ filter, sort, skip, limit });
          if (reads <= limit && all.length > skip) deep++;
        },
      ),
      { seed: SEED, numRuns: Number(process.env['BSVC_TEST_RUNS'] ?? 60) },
    );
    expect(deep).toBeGreaterThan(8);
  });
});
