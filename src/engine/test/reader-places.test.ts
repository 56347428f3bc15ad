import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type DataCollection, type Engine, openEngine } from '../index.js';
import { temporaryDir } from './transports.js';

// oxlint-disable-next-line typescript/no-explicit-any -- documents of any shape
type Items = DataCollection<any>;

const DOCUMENTS = 20_000;
const PER_GROUP = [{ $group: { _id: '$group', count: { $sum: 1 } } }, { $sort: { _id: 1 } }];
/** Would take hours. */
const endless = (from: string): object[] => {
  const eachForEach = { $lookup: { from, pipeline: [{ $match: { $expr: { $eq: ['$n', -1] } } }], as: 'none' } };
  return [{ $project: { n: 1 } }, eachForEach, eachForEach];
};

describe('places of reader threads', () => {
  const dataDir = temporaryDir();
  const addresses = new WeakMap<AbortSignal, string>();
  let engine: Engine;
  /** Of four owners: what stands before the last `_` of a name says whose it is. */
  const names = ['a_items', 'b_items', 'c_items', 'd_items'] as const;
  const items = (name: string): Items => engine.db('d').collection(name);

  beforeAll(async () => {
    const scheduler = {
      turn: () => new Promise<void>((resolve) => setImmediate(resolve)),
      partyOf: (signal: AbortSignal | undefined) => (signal && addresses.get(signal)) ?? '',
    };
    engine = openEngine({ dataDir, durability: 'relaxed', readerThreads: 1, scheduler });
    for (const name of names) {
      await items(name).insertMany(Array.from({ length: DOCUMENTS }, (_, n) => ({ _id: n, n, group: n % 10 })));
    }
  });
  afterAll(() => engine.close());

  it.each([1, 2, 3])('are not all of one client address, with reads of %i owners', async (owners) => {
    const left = new AbortController();
    addresses.set(left.signal, '203.0.113.1');
    const reads = names
      .slice(0, owners)
      .flatMap((name) =>
        Array.from({ length: 6 }, () => items(name).aggregate(endless(name), { signal: left.signal }).toArray()),
      );
    const ends = Promise.allSettled(reads);
    // By then all of them have gone to the thread, or wait for a place there.
    const { signal } = new AbortController();
    addresses.set(signal, '203.0.113.2');
    for (let again = 0; again < 3; again++) {
      expect(await items('d_items').aggregate(PER_GROUP, { signal }).toArray()).toHaveLength(10);
    }
    expect(engine.stats()).toMatchObject({ readerThreadsStarted: 1 });
    left.abort();
    expect((await ends).map(({ status }) => status)).toEqual(Array(reads.length).fill('rejected'));
  });
});
