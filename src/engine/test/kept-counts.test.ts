import { rmSync } from 'node:fs';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { type DataCollection, type Engine, openEngine } from '../index.js';
import { openRandom } from './helpers/random.js';
import { temporaryDir } from './transports.js';

const SEED = 20_261_123;
const ROUNDS = 400;

type Items = DataCollection<Record<string, unknown>>;

describe('the kept counts of a collection', () => {
  let dataDir: string;
  let engine: Engine;
  let items: Items;

  beforeEach(() => {
    dataDir = temporaryDir();
    engine = openEngine({ dataDir, durability: 'relaxed', countBy: 'gone' });
    items = engine.db('d').collection('items');
  });

  afterEach(async () => {
    await engine.close();
    rmSync(dataDir, { recursive: true, force: true });
  });

  /** Counts by looking at every document: an expression is never answered from what is kept. */
  const recount = (value: unknown): Promise<number> => items.countDocuments({ $expr: { $eq: ['$gone', value] } });

  it('are those of a scan after any history of writes and indexes', async () => {
    const random = openRandom(SEED);
    const values: unknown[] = [true, false, null, 'pending', undefined];
    for (let round = 0; round < ROUNDS; round++) {
      const _id = random.below(60) as never;
      const gone = random.pick(values);
      const tags = Array.from({ length: random.below(4) }, () => random.below(5));
      const set = { ...(gone === undefined ? {} : { gone }), tags, n: random.below(20) };
      await random.pick([
        () => items.updateOne({ _id }, { $set: set }, { upsert: true }),
        () => items.replaceOne({ _id }, set, { upsert: true }),
        () => items.deleteOne({ _id }),
        () => items.updateMany({ n: { $lt: 4 } }, { $set: { gone: false } }),
        () => items.deleteMany({ n: 19 }),
        () => items.createIndex({ tags: 1, n: 1 }, { name: 'tags' }),
        () => items.createIndex({ n: 1 }, { name: 'n', partialFilterExpression: { gone: false } }),
        () => items.dropIndex(random.pick(['tags', 'n'])).catch(() => undefined),
      ])();
      if (round % 40 === 0) expect(await engine.verify()).toEqual([]);
    }
    expect(await engine.verify()).toEqual([]);
    const [yes, no] = [await recount(true), await recount(false)];
    expect(yes).toBeGreaterThan(0);
    expect(no).toBeGreaterThan(0);
    expect(await items.countDocuments({ gone: true })).toBe(yes);
    expect(await items.countDocuments({ gone: false })).toBe(no);
    expect(await items.countDocuments({ gone: { $in: [true, false] } })).toBe(yes + no);
  });

  it('do not answer where a document has a list in the counted field, which may hold both', async () => {
    await items.insertMany([{ gone: true }, { gone: false }, { gone: [true, false] }]);
    expect(await items.countDocuments({ gone: true })).toBe(2);
    expect(await items.countDocuments({ gone: false })).toBe(2);
    expect(await items.countDocuments({ gone: { $in: [true, false] } })).toBe(3);
  });

  it('agree with a look at every page while writing goes on', async () => {
    await items.createIndex({ n: 1 });
    await items.insertMany(Array.from({ length: 2000 }, (_, n) => ({ _id: n as never, n, text: 'x'.repeat(n % 300) })));
    let writing = true;
    const writer = (async () => {
      for (let n = 0; writing; n++) {
        await items.updateOne({ _id: (n % 2000) as never }, { $set: { n: -n, text: 'y'.repeat(n % 700) } });
        if (n % 5 === 0) await items.deleteOne({ _id: ((n * 7) % 2000) as never });
      }
    })();
    for (let look = 0; look < 5; look++) expect(await engine.verify()).toEqual([]);
    writing = false;
    await writer;
  });
});
