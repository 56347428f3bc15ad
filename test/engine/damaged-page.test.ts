import { rmSync } from 'node:fs';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { type DataCollection, type Engine, openEngine } from '../../src/engine/index.js';
import { DOCUMENT_SPACE } from '../../src/engine/storage/format/key-spaces.js';
import { eventually } from '../helpers/eventually.js';
import { temporaryDir } from './transports.js';
import { firstEntryAt, flipBit, mapPages } from './page-map.js';

const DOCUMENTS = 2_000;
/** Of an entry: whether its value lies in pages of its own. One that says so leads LMDB to pages that are not there. */
const FLAGS_AT = 4;
const BIG_VALUE_BIT = 0;

interface Item {
  _id: number;
  text: string;
}

describe.each([0, 1])('a damaged page, with %d reader threads', (readerThreads) => {
  let dataDir: string;
  let damagedAt: number;
  let engine: Engine;
  let hurt: DataCollection<Item>;
  let whole: DataCollection<Item>;

  beforeEach(async () => {
    dataDir = temporaryDir();
    const writer = openEngine({ dataDir, durability: 'relaxed' });
    for (const name of ['hurt', 'whole']) {
      const items = writer.db('d').collection<Item>(name);
      await items.insertMany(Array.from({ length: DOCUMENTS }, (_, n) => ({ _id: n, text: `text ${n} `.repeat(20) })));
    }
    await writer.close();
    engine = openEngine({ dataDir, durability: 'relaxed', readerThreads });
    hurt = engine.db('d').collection('hurt');
    whole = engine.db('d').collection('whole');
    // In the middle of the first collection's documents, where no neighbour's are.
    const leaves = mapPages(dataDir).filter(({ kind, key }) => kind === 'leaf' && key[0] === DOCUMENT_SPACE);
    leaves.sort((a, b) => a.key.compare(b.key));
    damagedAt = firstEntryAt(dataDir, leaves[Math.floor(leaves.length / 4)]!.number) + FLAGS_AT;
    flipBit(dataDir, damagedAt, BIG_VALUE_BIT);
  });

  afterEach(async () => {
    await engine.close();
    rmSync(dataDir, { recursive: true, force: true });
  });

  const damaged = { name: 'StorageError', code: 'DAMAGED', ns: 'd.hurt' };

  it('is told by what reads it, and takes nothing else along', async () => {
    for (let round = 0; round < 3; round++) {
      await expect(hurt.find({ text: /nothing/ }).toArray()).rejects.toMatchObject(damaged);
      expect(await whole.countDocuments({ text: /^text 7 / })).toBe(1);
      expect(await whole.findOne({ _id: 5 })).toMatchObject({ _id: 5 });
      expect(await hurt.findOne({ _id: 0 })).toMatchObject({ _id: 0 });
      await whole.updateOne({ _id: 5 }, { $set: { text: `round ${round}` } });
      await hurt.updateOne({ _id: 0 }, { $set: { text: `round ${round}` } });
      await engine.probe();
    }
    // A thread gives its own up in its next turn.
    await eventually('no snapshot is held', () => engine.snapshots().length === 0);
  });

  it('takes no read along that goes on in the same moment of the data', async () => {
    const reads = await Promise.allSettled(
      Array.from({ length: 40 }, (_, n) => (n % 2 === 0 ? whole : hurt).find({ text: { $gt: 'text' } }).toArray()),
    );
    for (const [n, read] of reads.entries()) {
      if (n % 2 === 0) expect(read).toMatchObject({ status: 'fulfilled', value: { length: DOCUMENTS } });
      else expect(read).toMatchObject({ status: 'rejected', reason: damaged });
    }
    // A thread gives its own up in its next turn.
    await eventually('no snapshot is held', () => engine.snapshots().length === 0);
  });

  it('takes no write along that shares its transaction', async () => {
    const writes = await Promise.allSettled(
      Array.from({ length: DOCUMENTS }, (_, n) => [
        hurt.updateOne({ _id: n }, { $set: { text: 'new' } }),
        whole.updateOne({ _id: n }, { $set: { text: 'new' } }),
      ]).flat(),
    );
    const refused = writes.filter(({ status }) => status === 'rejected');
    expect(refused.length).toBeGreaterThan(0);
    for (const write of refused) expect(write).toMatchObject({ reason: damaged });
    expect(await whole.countDocuments({ text: 'new' })).toBe(DOCUMENTS);
    for (const [n, { status }] of writes.filter((_, n) => n % 2 === 0).entries()) {
      if (status === 'fulfilled') expect(await hurt.findOne({ _id: n })).toMatchObject({ text: 'new' });
    }
  });

  it('is noted for those who look for it later, until everything is found whole', async () => {
    await expect(hurt.find({ text: /nothing/ }).toArray()).rejects.toMatchObject(damaged);
    const met = [expect.objectContaining({ message: expect.stringMatching(/^d\.hurt: /) as string })];
    expect(engine.damage()).toEqual(met);
    expect(await engine.verify()).not.toEqual([]);
    expect(engine.damage()).toEqual(met);
    flipBit(dataDir, damagedAt, BIG_VALUE_BIT);
    expect(await engine.verify()).toEqual([]);
    expect(engine.damage()).toEqual([]);
  });
});
