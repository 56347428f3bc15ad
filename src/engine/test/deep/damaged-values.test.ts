import { copyFileSync, mkdirSync, rmSync } from 'node:fs';
import { createHash } from 'node:crypto';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type DataCollection, openEngine, StorageError, verifyDataFile } from '../../index.js';
import { DATA_FILE } from '../../storage/file/environment.js';
import { DOCUMENT_SPACE } from '../../storage/format/key-spaces.js';
import { openRandom } from '../helpers/random.js';
import { openSeed } from '../helpers/seed.js';
import { flipBit, valuesIn } from '../page-map.js';
import { temporaryDir } from '../transports.js';

/** BSVC_TEST_FLIPS=1000 for the long form. */
const FLIPS = Number(process.env['BSVC_TEST_FLIPS'] ?? 60);
const SEED = openSeed('damaged values');
const DOCUMENTS = 400;
const GROUPS = 20;
const TOLD = 'told';

type Item = Record<string, unknown>;

const digestOf = (rows: unknown): string => createHash('sha1').update(JSON.stringify(rows)).digest('hex');

async function each<T>(numbers: number, read: (n: number) => Promise<T>): Promise<T[]> {
  const all: T[] = [];
  for (let n = 0; n < numbers; n++) all.push(await read(n));
  return all;
}

/** What each way of reading gives, or that it says that something is damaged; any other error is thrown. */
async function readAll(dataDir: string): Promise<Record<string, string>> {
  const reads: Record<string, string> = {};
  const note = async (name: string, read: () => Promise<unknown>): Promise<void> => {
    try {
      reads[name] = digestOf(await read());
    } catch (error) {
      if (!(error instanceof StorageError)) throw error;
      expect(error).toMatchObject({ code: expect.stringMatching(/^(DAMAGED|FOREIGN|NEWER_FORMAT)$/) as string });
      reads[name] = TOLD;
    }
  };
  let engine: ReturnType<typeof openEngine>;
  await note('open', async () => {
    engine = openEngine({ dataDir, durability: 'relaxed', countBy: 'isDeleted' });
    return Promise.resolve('open');
  });
  if (reads['open'] === TOLD) return reads;
  const items: DataCollection<Item> = engine!.db('d').collection('items');
  await note('scan', () => items.find().toArray());
  await note('index', () => each(GROUPS, (group) => items.find({ group }).sort({ n: -1 }).toArray()));
  await note('unique', () => each(DOCUMENTS, (n) => items.findOne({ slot: `s${n}` })));
  await note('points', () => each(DOCUMENTS, (n) => items.findOne({ _id: n as never })));
  await note('groups', () => items.aggregate([{ $group: { _id: '$group', n: { $sum: 1 } } }]).toArray());
  await engine!.close();
  return reads;
}

describe('a stored value of which one bit is another', () => {
  const dataDir = temporaryDir();
  const copies = temporaryDir();
  const random = openRandom(SEED);
  let whole: Record<string, string>;

  beforeAll(async () => {
    const engine = openEngine({ dataDir, durability: 'relaxed', countBy: 'isDeleted' });
    const items: DataCollection<Item> = engine.db('d').collection('items');
    await items.createIndexes([
      { key: { group: 1, n: -1 }, name: 'group' },
      { key: { slot: 1 }, name: 'slot', unique: true },
    ]);
    await items.insertMany(
      Array.from({ length: DOCUMENTS }, (_, n) => ({
        _id: n as never,
        n,
        group: n % GROUPS,
        slot: `s${n}`,
        isDeleted: n % 9 === 0,
        text: `text ${n} `.repeat(n % 50 === 0 ? 2_000 : 20 + (n % 30)),
      })),
    );
    await engine.close();
    whole = await readAll(dataDir);
    expect(Object.values(whole)).not.toContain(TOLD);
  });

  afterAll(() => {
    rmSync(dataDir, { recursive: true, force: true });
    rmSync(copies, { recursive: true, force: true });
  });

  it('is told by what reads it and named by a look at everything, and never served', async () => {
    const places = valuesIn(dataDir);
    // Few, so that hardly any flip would meet one by chance.
    const records = places.filter(({ space }) => space < DOCUMENT_SPACE);
    expect(records.length).toBeGreaterThan(3);
    let told = 0;
    for (let n = 0; n < FLIPS; n++) {
      const copy = join(copies, String(n));
      mkdirSync(copy);
      copyFileSync(join(dataDir, DATA_FILE), join(copy, DATA_FILE));
      const place = records[n] ?? places[random.below(places.length)]!;
      const flip = { at: place.at + random.below(place.bytes), bit: random.below(8) };
      flipBit(copy, flip.at, flip.bit);
      const named = await verifyDataFile(copy);
      const reads = await readAll(copy);
      const wrong = Object.entries(reads).filter(([name, read]) => read !== TOLD && read !== whole[name]);
      expect({ ...flip, wrong, isNamed: named.length > 0 }).toEqual({ ...flip, wrong: [], isNamed: true });
      if (Object.values(reads).includes(TOLD)) told++;
      rmSync(copy, { recursive: true });
    }
    expect(told).toBeGreaterThan(FLIPS / 2);
  });
});
