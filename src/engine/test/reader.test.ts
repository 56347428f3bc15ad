import { rmSync } from 'node:fs';
import { deserialize } from 'bson';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type DataCollection, type Engine, openEngine } from '../index.js';
import { temporaryDir } from './transports.js';

interface Sized {
  _id: number;
  group: number;
  text: string;
}

/** Below and above what lmdb copies into one buffer and what it hands out as a view of the file. */
const SIZES = [10, 40_000, 0, 300_000, 5_000_000, 100, 20_000, 3_000];

describe('reading without copies', () => {
  const dataDir = temporaryDir();
  let engine: Engine;
  let items: DataCollection<Sized>;

  beforeAll(async () => {
    engine = openEngine({ dataDir, durability: 'relaxed' });
    items = engine.db('test').collection<Sized>('items');
    await items.createIndex({ group: 1, _id: 1 });
    await items.insertMany(SIZES.map((size, n) => ({ _id: n, group: n % 2, text: String(n).repeat(size) })));
  });

  afterAll(async () => {
    await engine.close();
    rmSync(dataDir, { recursive: true, force: true });
  });

  const expected = (keep: (n: number) => boolean): Sized[] =>
    SIZES.map((size, n) => ({ _id: n, group: n % 2, text: String(n).repeat(size) })).filter(({ _id }) => keep(_id));

  it('gives every document of a scan whole, whatever came before it', async () => {
    expect(await items.find().toArray()).toEqual(expected(() => true));
    expect(await items.find({ text: { $ne: '' } }).toArray()).toEqual(expected((n) => SIZES[n] !== 0));
  });

  it('gives every document of an index whole, in both directions and in batches', async () => {
    const odd = expected((n) => n % 2 === 1);
    expect(await items.find({ group: 1 }).sort({ _id: 1 }).toArray()).toEqual(odd);
    expect(await items.find({ group: 1 }).sort({ _id: -1 }).batchSize(1).toArray()).toEqual([...odd].reverse());
  });

  it('gives stored bytes that later reads leave alone', async () => {
    const rows = (await items.find({}, { raw: true }).toArray()) as unknown as Buffer[];
    await items.find().toArray();
    expect(rows.map((row) => deserialize(row))).toEqual(expected(() => true));
    const one = (await items.findOne({ _id: 3 }, { raw: true })) as unknown as Buffer;
    await items.findOne({ _id: 4 });
    expect(deserialize(one)).toEqual(expected((n) => n === 3)[0]);
  });
});
