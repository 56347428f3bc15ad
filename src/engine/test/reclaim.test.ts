import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it, vi } from 'vitest';
import { openEngine } from '../index.js';
import { Catalog } from '../storage/catalog/catalog.js';
import { DATA_FILE } from '../storage/file/environment.js';
import { PageFile } from '../storage/file/page-file.js';
import { eventually } from './helpers/eventually.js';
import { temporaryDir } from './transports.js';

const COLLECTIONS = 300;

// Each drop began to free what all had left, and looked all of them up for each: 300 took more than 45 s.
it('what many drops leave is freed by few transactions, which look a few of them up at a time', async () => {
  const dataDir = temporaryDir();
  const discarded = vi.spyOn(Catalog.prototype, 'discarded');
  const engine = openEngine({ dataDir, durability: 'relaxed' });
  for (let n = 0; n < COLLECTIONS; n++) {
    await engine
      .db('many')
      .collection(`c${n}`)
      .createIndexes([{ key: { a: 1 }, name: 'a' }]);
    await engine.db('many').collection(`c${n}`).insertOne({ a: n });
  }
  const file = new PageFile(join(dataDir, DATA_FILE));
  const before = file.readMeta().transaction;
  discarded.mockClear();
  await Promise.all(Array.from({ length: COLLECTIONS }, (_, n) => engine.db('many').collection(`c${n}`).drop()));
  const isEmpty = (): boolean => discarded.mock.results.at(-1)?.value.length === 0;
  await eventually('nothing is left of them', isEmpty);
  expect(file.readMeta().transaction - before).toBeLessThan(COLLECTIONS);
  const read = discarded.mock.results.reduce((sum, { value }) => sum + (value as Buffer[]).length, 0);
  expect(read).toBeGreaterThanOrEqual(2 * COLLECTIONS);
  expect(read).toBeLessThan(8 * COLLECTIONS);
  expect(await engine.verify()).toEqual([]);
  file.close();
  await engine.close();
  discarded.mockRestore();
  rmSync(dataDir, { recursive: true });
});
