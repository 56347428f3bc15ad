import { statSync } from 'node:fs';
import { join } from 'node:path';
import { beforeEach, describe, expect, it } from 'vitest';
import { DATA_FILE } from '../../index.js';
import { eventually } from '../helpers/eventually.js';
import { holdSnapshot, killHard } from '../helpers/snapshot-holder.js';
import { openEnginePerTest } from '../engine-per-test.js';

const own = openEnginePerTest();
beforeEach(async () => {
  const documents = Array.from({ length: 500 }, (_, n) => ({ _id: n, text: 'x'.repeat(500) }));
  await own.engine.db('d').collection<{ _id: number }>('c').insertMany(documents);
  await updateAll();
});

async function updateAll(): Promise<void> {
  for (let n = 0; n < 10; n++)
    await own.engine
      .db('d')
      .collection('c')
      .updateMany({}, { $inc: { n: 1 } });
}

/** By how much the data file grows while every document is updated ten times. */
async function growth(): Promise<number> {
  const size = (): number => statSync(join(own.path, DATA_FILE)).size;
  const before = size();
  await updateAll();
  return size() - before;
}

describe('snapshots that other processes hold', () => {
  it('stop the growth of the data file once their process was killed, without anybody doing anything', async () => {
    const readers = [await holdSnapshot(own.path), await holdSnapshot(own.path)];
    await eventually('the file grows while they read', async () => (await growth()) > 0);
    await Promise.all(readers.map(killHard));
    await eventually('freed pages are used again, for good', async () => {
      for (let round = 0; round < 5; round++) if ((await growth()) > 0) return false;
      return true;
    });
  });

  it('are told with process and age while their process is stopped, and stop the growth when it is ended', async () => {
    const reader = await holdSnapshot(own.path);
    try {
      reader.kill('SIGSTOP');
      await updateAll();
      const first = own.engine.snapshots().find(({ pid }) => pid === reader.pid)!;
      expect(first).toBeDefined();
      await eventually('it becomes older', () => {
        const [oldest] = own.engine.snapshots();
        return oldest?.pid === reader.pid && oldest.ageMs > first.ageMs + 100;
      });
      expect(own.engine.stats().oldestSnapshotMs).toBeGreaterThan(first.ageMs + 100);
    } finally {
      await killHard(reader);
    }
    await eventually('freed pages are used again', async () => (await growth()) === 0);
    expect(own.engine.stats().oldestSnapshotMs).toBe(0);
  });
});
