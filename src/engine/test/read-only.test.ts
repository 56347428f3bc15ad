import { copyFileSync, mkdirSync, openSync, readSync, renameSync, rmSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { openEngine, repairDataFile } from '../index.js';
import { DATA_FILE } from '../storage/file/environment.js';
import { eventually } from './helpers/eventually.js';
import { temporaryDir } from './transports.js';
import { freeNumbersAt, loseFreePages, mapPages, putIntoList } from './page-map.js';

interface Item {
  _id: number;
  text: string;
}

let dataDir: string;
beforeEach(async () => {
  dataDir = temporaryDir();
  const engine = openEngine({ dataDir, durability: 'relaxed' });
  const items = engine.db('d').collection<Item>('items');
  await items.insertMany(Array.from({ length: 1_000 }, (_, n) => ({ _id: n, text: `text ${n} `.repeat(40) })));
  await items.deleteMany({ _id: { $gte: 100 } });
  await items.updateOne({ _id: 1 }, { $set: { text: 'new' } });
  await engine.close();
});
afterEach(() => {
  rmSync(dataDir, { recursive: true, force: true });
});

describe('a list of free pages', () => {
  it('that lacks some is no damage: the store opens, is written to and found whole, with a note', async () => {
    loseFreePages(dataDir, 3);
    const engine = openEngine({ dataDir, durability: 'relaxed' });
    const items = engine.db('d').collection<Item>('items');
    expect(engine.refusal()).toBeNull();
    await items.insertMany(Array.from({ length: 500 }, (_, n) => ({ _id: 5_000 + n, text: `more ${n}` })));
    const lost: number[] = [];
    expect(await engine.verify({ onLostPages: (pages) => lost.push(pages) })).toEqual([]);
    expect(lost).toEqual([3]);
    await engine.close();
  });

  it('that lacks some is copied as it is: the backup opens, is written to and found whole', async () => {
    loseFreePages(dataDir, 3);
    const look = async (dir: string): Promise<[documents: number, problems: string[], lost: number]> => {
      const engine = openEngine({ dataDir: dir, durability: 'relaxed' });
      const items = engine.db('d').collection<Item>('items');
      await items.insertOne({ _id: -1, text: 'after' });
      let lost = 0;
      const problems = await engine.verify({ onLostPages: (pages) => (lost = pages) });
      const documents = await items.countDocuments({});
      await engine.close();
      return [documents, problems, lost];
    };
    const copyDir = join(dataDir, 'copy');
    mkdirSync(copyDir);
    const engine = openEngine({ dataDir, durability: 'relaxed' });
    await engine.backup(join(copyDir, DATA_FILE));
    await engine.close();
    expect(await look(copyDir)).toEqual([101, [], 3]);
    expect(await look(dataDir)).toEqual([101, [], 3]);
    // Nothing is damaged, so a repair leaves it alone.
    expect((await repairDataFile(dataDir)).problems).toEqual([]);
  });

  it('that names pages in use is named by a look at every page, and does not close the store', async () => {
    const [first] = freeNumbersAt(dataDir);
    const used = mapPages(dataDir).find(({ kind }) => kind === 'leaf')!.number;
    putIntoList(dataDir, first!, BigInt(used));
    const engine = openEngine({ dataDir, durability: 'relaxed' });
    expect(engine.refusal()).toBeNull();
    expect((await engine.verify()).join()).toMatch(/list of free pages is damaged/);
    expect(await engine.db('d').collection<Item>('items').countDocuments({})).toBe(100);
    await engine.close();
  });
});

describe('a process that was killed between writing a commit and noting it', () => {
  it('leaves lists and counts of one moment, and the next second all see its commit', async () => {
    const engine = openEngine({ dataDir });
    const items = engine.db('d').collection<Item>('items');
    await items.createIndex({ text: 1 });
    const listed = async (): Promise<number> => (await items.find({ text: { $gte: '' } }).toArray()).length;
    const counted = (): Promise<number> => items.countDocuments({ text: { $gte: '' } });
    for (let round = 0; round < 5; round++) {
      await items.insertOne({ _id: 10_000 + round, text: 'last' });
      noteBefore();
      expect(await counted()).toBe(await listed());
      expect(await listed()).toBe(100 + round);
      await eventually('the commit is noted', async () => (await listed()) === 101 + round);
      expect(await counted()).toBe(101 + round);
    }
    await engine.close();
  });

  /** Sets the lock file's note of the last commit back by one. */
  function noteBefore(): void {
    // Never closed: that would end the locks of LMDB.
    const lock = openSync(join(dataDir, `${DATA_FILE}-lock`), 'r+');
    const note = Buffer.alloc(8);
    readSync(lock, note, 0, 8, 8);
    note.writeBigUInt64LE(note.readBigUInt64LE(0) - 1n);
    writeSync(lock, note, 0, 8, 8);
  }
});

describe('a data file that is taken away from under a process', () => {
  it.each(['removed', 'replaced'])('is written no more when it was %s', async (how) => {
    const engine = openEngine({ dataDir });
    const items = engine.db('d').collection<Item>('items');
    await items.updateOne({ _id: 2 }, { $set: { text: 'before' } });
    const lost: string[] = [];
    engine.onLost(({ code }) => lost.push(code));
    const aside = join(dataDir, 'aside');
    mkdirSync(aside);
    renameSync(join(dataDir, DATA_FILE), join(aside, DATA_FILE));
    if (how === 'replaced') copyFileSync(join(aside, DATA_FILE), join(dataDir, DATA_FILE));
    await eventually('the process is told', () => lost.length > 0);
    await expect(items.updateOne({ _id: 2 }, { $set: { text: 'after' } })).rejects.toMatchObject({ code: 'REPLACED' });
    expect(await items.findOne({ _id: 2 })).toMatchObject({ text: 'before' });
    await engine.close();
  });
});
