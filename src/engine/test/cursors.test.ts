import { rmSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type DataCollection, type Engine, openEngine } from '../index.js';
import { temporaryDir } from './transports.js';

describe('cursors of the in-process transport', () => {
  const dataDir = temporaryDir();
  let engine: Engine;
  let items: DataCollection;

  beforeAll(async () => {
    engine = openEngine({ dataDir });
    items = engine.db('d').collection('items');
    await items.insertMany(Array.from({ length: 2000 }, (_, n) => ({ n })));
  });

  afterAll(async () => {
    await engine.close();
    rmSync(dataDir, { recursive: true, force: true });
  });

  async function countOpen(): Promise<unknown> {
    const { metrics } = (await engine.db('d').command({ serverStatus: 1 })) as {
      metrics: { cursor: { open: { total: number } } };
    };
    return metrics.cursor.open.total;
  }

  it('are open while there is more to come', async () => {
    const cursor = items.find({}, { batchSize: 2 });
    await cursor.next();
    expect(await countOpen()).toBe(1);
    await cursor.close();
    expect(await countOpen()).toBe(0);
  });

  it('leave nothing behind when they are closed while a batch is on its way', async () => {
    const cursor = items.find({}, { batchSize: 2 }).sort({ n: -1 });
    const pending = cursor.next();
    await cursor.close();
    expect(await pending).toBeNull();
    expect(await countOpen()).toBe(0);
  });

  it('leave nothing behind when the caller’s own function throws', async () => {
    const failing = (): object => {
      throw new Error('not this one');
    };
    const options = { batchSize: 2 };
    await expect(items.find({}, options).map(failing).toArray()).rejects.toThrow('not this one');
    await expect(items.find({}, options).forEach(failing as () => void)).rejects.toThrow('not this one');
    expect(await countOpen()).toBe(0);
  });

  it.each([2, 50, 200, 600])('read on in batches of %i while what they have read is changed', async (batchSize) => {
    const changing = engine.db('d').collection(`changing${batchSize}`);
    await changing.insertMany(Array.from({ length: 700 }, (_, n) => ({ n, changed: 0 })));
    const cursor = changing.find({}, { batchSize });
    const met = [await cursor.next()];
    // Documents of the first batch, which the cursor does not meet again, and others that it will.
    await changing.updateMany({ n: { $in: [0, 1, 699] } }, { $inc: { changed: 1 } });
    for (let next = await cursor.next(); next; next = await cursor.next()) met.push(next);
    expect(met.map((each) => (each as unknown as { n: number }).n)).toEqual(Array.from({ length: 700 }, (_, n) => n));
  });
});
