import {
  copyFileSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type DataCollection, type Engine, openEngine, repairDataFile, type RepairReport } from '../../index.js';
import { DATA_FILE } from '../../storage/file/environment.js';
import { CHANGE_SPACE, COLLECTION_SPACE, DOCUMENT_SPACE, INDEX_SPACE } from '../../storage/format/key-spaces.js';
import { PageFile } from '../../storage/file/page-file.js';
import { isWhole, rescueEntries } from '../../storage/repair/rescue-entries.js';
import { openRandom } from '../helpers/random.js';
import { openSeed } from '../helpers/seed.js';
import { temporaryDir } from '../transports.js';
import { firstEntryAt, flipBit, type MappedPage, mapPages, nodesOf, PAGE_BYTES } from '../page-map.js';

const DOCUMENTS = 1_500;
const NAMES = ['items', 'others', 'notes'];
const SEED = openSeed('repairs');
/** Where a page says of which kind it is. */
const KIND_AT = 18;
/** A branch says in 48 bits which page lies below. */
const POINTER_BITS = 48;
const FLIPS = Number(process.env['BSVC_TEST_FLIPS'] ?? 20);

interface Item {
  _id: number;
  group: number;
  slot: string;
  text: string;
  isDeleted: boolean;
}

type Content = Record<string, Item[]>;

describe('the repair of a damaged data file', () => {
  const source = temporaryDir();
  let pages: MappedPage[];
  let whole: Content;
  const copies: string[] = [];

  beforeAll(async () => {
    const engine = openEngine({ dataDir: source, durability: 'relaxed', countBy: 'isDeleted' });
    const db = engine.db('d');
    for (const name of NAMES) {
      const items = db.collection<Item>(name);
      await items.createIndexes([
        { key: { group: 1, _id: -1 }, name: 'group' },
        { key: { slot: 1 }, name: 'slot', unique: true },
      ]);
      if (name !== 'notes') await engine.changeLogs('d').begin(name, { first: ['group'], omit: [] });
      const docs = Array.from({ length: DOCUMENTS }, (_, n) => ({
        _id: n,
        group: n % 20,
        slot: `${name} ${n}`,
        text: n % 300 === 7 ? 'large '.repeat(2_000) : `text ${n} `.repeat(10 + (n % 20)),
        isDeleted: n % 9 === 0,
      }));
      await items.insertMany(docs);
    }
    // Updates and removals leave free pages with earlier versions.
    for (const name of NAMES) {
      const items = db.collection<Item>(name);
      await items.updateMany({ group: 3 }, { $set: { text: 'newer '.repeat(20) } });
      await items.deleteMany({ group: 5, _id: { $gt: 900 } });
      await items.updateMany({ group: { $gt: 15 } }, { $set: { text: 'newest' } });
    }
    whole = await contentOf(engine);
    await engine.close();
    pages = mapPages(source);
  });

  afterAll(() => {
    for (const dir of [source, ...copies]) rmSync(dir, { recursive: true, force: true });
  });

  it('leaves a whole store alone', async () => {
    const { dataDir, before } = copy();
    expect(await repairDataFile(dataDir)).toEqual({ problems: [], collections: [], documents: 0, damagedFile: null });
    expect(readFileSync(join(dataDir, DATA_FILE)).equals(before())).toBe(true);
    expect(readdirSync(dataDir).filter((name) => !name.startsWith(DATA_FILE))).toEqual([]);
  });

  it('loses one document whose bytes are damaged, and names it; indexes and counts fit the others', async () => {
    const { dataDir } = copy();
    damageText(dataDir, 'text 768 ');
    const { collections } = await repaired(dataDir, { items: [768], others: [768], notes: [768] });
    for (const collection of collections) {
      expect(collection).toMatchObject({ documents: whole['items']!.length - 1, lost: 1, ids: ['768'] });
      expect(collection.logBeginsAnew).toBe(collection.ns !== 'd.notes');
    }
    expect(collections.map(({ ns }) => ns).sort()).toEqual(['d.items', 'd.notes', 'd.others']);
  });

  it.each([
    ['its kind', 18, 2],
    ['its number', 1, 3],
    ['its transaction', 15, 6],
    ['where its nodes end', 22, 4],
    ['where its list of nodes ends', 20, 1],
  ])('loses nothing of a page of documents whose header is damaged: %s', async (_what, at, bit) => {
    const { dataDir } = copy();
    flipBit(dataDir, pageOf('leaf', DOCUMENT_SPACE).number * PAGE_BYTES + at, bit);
    const { collections } = await repaired(dataDir, {});
    expect(collections).toEqual([]);
  });

  it.each([1, 4, 5, 6])('loses one document when a bit of its key is flipped: byte %i', async (byte) => {
    const { dataDir } = copy();
    const node = nodesOf(dataDir, pageOf('leaf', DOCUMENT_SPACE).number)[3]!;
    flipBit(dataDir, node + 8 + byte, 7);
    const report = await repairDataFile(dataDir);
    expect(report.collections).toMatchObject([{ lost: 1, uncertain: 0 }]);
    expect(await differenceOf(dataDir, report)).toEqual([]);
  });

  it('loses nothing when a page that leads to others is damaged, as long as the free pages are known', async () => {
    const { dataDir } = copy();
    for (const page of pages.filter(({ kind }) => kind === 'branch'))
      flipBit(dataDir, page.number * PAGE_BYTES + 18, 5);
    const { collections } = await repaired(dataDir, {});
    expect(collections).toEqual([]);
  });

  it(`finds everything again below branches with a flipped bit: ${FLIPS * 5} of them`, () => {
    const { dataDir } = copy();
    const random = openRandom(SEED).fork('branches');
    const branches = pages.filter(({ kind }) => kind === 'branch');
    const stored = rescued(dataDir);
    let found = 0;
    for (let n = 0; n < FLIPS * 5; n++) {
      const { number } = random.pick(branches);
      const { at, bit } = n % 2 === 0 ? pointerBit(dataDir, number) : anyBit(number);
      flipBit(dataDir, at, bit);
      const what = `bit ${bit} of byte ${at % PAGE_BYTES} of page ${number}`;
      const there = rescued(dataDir);
      flipBit(dataDir, at, bit);
      const missing = [...stored.entries].filter(([key, value]) => there.entries.get(key) !== value);
      expect(missing.length, what).toBe(0);
      if (there.isRescued) found++;
    }
    console.log(`branches: ${found} of ${FLIPS * 5} led astray`);
    expect(found).toBeGreaterThan(FLIPS);

    function anyBit(number: number): { at: number; bit: number } {
      return { at: number * PAGE_BYTES + random.below(PAGE_BYTES), bit: random.below(8) };
    }

    function pointerBit(dir: string, number: number): { at: number; bit: number } {
      const node = random.pick(nodesOf(dir, number));
      const bit = random.below(POINTER_BITS);
      return { at: node + (bit >>> 3), bit: bit & 7 };
    }
  });

  it('builds a damaged index anew', async () => {
    const { dataDir } = copy();
    const page = pageOf('leaf', INDEX_SPACE);
    // In the key of an entry.
    flipBit(dataDir, firstEntryAt(dataDir, page.number) + 8 + 6, 0);
    const { collections } = await repaired(dataDir, {});
    expect(collections).toMatchObject([{ lost: 0, ids: [], logBeginsAnew: false }]);
    expect(collections[0]!.rebuilt).toHaveLength(1);
  });

  it('begins a damaged log of changes anew, under another epoch', async () => {
    const { dataDir } = copy();
    flipBit(dataDir, firstEntryAt(dataDir, pageOf('leaf', CHANGE_SPACE).number) + 8 + 13 + 5, 3);
    const { collections } = await repaired(dataDir, {});
    expect(collections).toMatchObject([{ lost: 0, rebuilt: [], logBeginsAnew: true }]);
  });

  it('makes a new list of free pages', async () => {
    const { dataDir } = copy();
    const free = pages.filter(({ kind, isLeaf }) => kind === 'free' && isLeaf).at(-1)!;
    flipBit(dataDir, firstEntryAt(dataDir, free.number) + 8 + 8 + 8 + 1, 1);
    const { collections } = await repaired(dataDir, {});
    expect(collections).toEqual([]);
  });

  it.each([
    ['what the first page is', 24, 3],
    ['what the second page is', PAGE_BYTES + 24, 3],
    ['the transaction of the first page', 152 + 5, 3],
    ['the transaction of the second page', PAGE_BYTES + 152 + 5, 3],
  ])('reads the state that can be read when the beginning is damaged: %s', async (_what, at, bit) => {
    const { dataDir } = copy();
    flipBit(dataDir, at, bit);
    const report = await repairDataFile(dataDir);
    expect(report.problems).not.toEqual([]);
    const engine = openEngine({ dataDir, durability: 'relaxed', countBy: 'isDeleted' });
    expect(await engine.verify()).toEqual([]);
    expect((await contentOf(engine))['items']!.length).toBeGreaterThan(DOCUMENTS - 100);
    await engine.close();
  });

  it('keeps the documents of a collection whose definition is damaged', async () => {
    const { dataDir } = copy();
    damageRecord(dataDir, 'd.items');
    const report = await repairDataFile(dataDir);
    const engine = openEngine({ dataDir, durability: 'relaxed', countBy: 'isDeleted' });
    expect((await contentOf(engine))['items']).toEqual(whole['items']);
    expect(await engine.verify()).toEqual([]);
    expect(report.collections).toMatchObject([{ ns: 'd.items', lost: 0 }]);
    expect(report.collections[0]!.notes[0]).toContain('Its definition is lost');
    await engine.close();
  });

  it('keeps the documents of several such collections under names of its own', async () => {
    const { dataDir } = copy();
    damageRecord(dataDir, 'd.items');
    damageRecord(dataDir, 'd.others');
    const { collections } = await repairDataFile(dataDir);
    const found = collections.map(({ ns, documents }) => [ns.replace(/\d+$/, 'N'), documents]);
    const recovered = ['recovered.collection_N', whole['items']!.length];
    expect(found.sort()).toEqual([['d.items', 0], ['d.others', 0], recovered, recovered]);
  });

  it('changes nothing in a dry run', async () => {
    const { dataDir, before } = copy();
    damageText(dataDir, 'text 768 ');
    const damaged = before();
    const report = await repairDataFile(dataDir, { dryRun: true });
    expect(report).toMatchObject({ damagedFile: null });
    expect(report.collections).toHaveLength(3);
    expect(readFileSync(join(dataDir, DATA_FILE)).equals(damaged)).toBe(true);
    expect(readdirSync(dataDir).filter((name) => !name.startsWith(DATA_FILE))).toEqual([]);
  });

  it(`keeps whatever is whole, and says what is not: ${FLIPS} flips anywhere`, async () => {
    const random = openRandom(SEED);
    const kinds = { untouched: 0, nothingLost: 0, lost: 0 };
    for (let n = 0; n < FLIPS; n++) {
      const { dataDir } = copy();
      // Pages in use, the first two and the list of free pages as often as all others.
      const some = pages.filter(({ kind }) => kind !== 'unused');
      const few = some.filter(({ kind }) => kind === 'branch' || kind === 'free' || kind === 'meta');
      const page = (n % 2 === 0 ? few : some)[random.below((n % 2 === 0 ? few : some).length)]!;
      // Many bits are of no account; a page is never of another kind.
      const isSure = n === 1 && page.kind !== 'meta';
      const within = isSure ? KIND_AT : random.below(page.kind === 'meta' ? 160 : PAGE_BYTES);
      const at = page.number * PAGE_BYTES + within;
      const bit = random.below(8);
      flipBit(dataDir, at, bit);
      const what = `bit ${bit} of byte ${at % PAGE_BYTES} of page ${page.number}, ${page.kind}`;
      const report = await repairDataFile(dataDir);
      if (report.problems.length === 0) {
        kinds.untouched++;
      } else {
        const lost = report.collections.reduce((sum, collection) => sum + (collection.lost ?? 0), 0);
        if (page.kind !== 'meta') expect(await differenceOf(dataDir, report), what).toEqual([]);
        if (lost === 0) kinds.nothingLost++;
        else kinds.lost++;
        expect(lost, what).toBeLessThanOrEqual(1);
      }
      rmSync(dataDir, { recursive: true });
    }
    console.log(`repairs: ${JSON.stringify(kinds)}`);
    expect(kinds.nothingLost).toBeGreaterThan(0);
  });

  function copy(): { dataDir: string; before: () => Buffer } {
    const dataDir = temporaryDir();
    copies.push(dataDir);
    mkdirSync(dataDir, { recursive: true });
    copyFileSync(join(source, DATA_FILE), join(dataDir, DATA_FILE));
    return { dataDir, before: () => readFileSync(join(dataDir, DATA_FILE)) };
  }

  /** What of the file can be read, without making a new one of it. */
  function rescued(dataDir: string): { entries: Map<string, string>; isRescued: boolean } {
    const file = new PageFile(join(dataDir, DATA_FILE));
    const found = { entries: new Map<string, string>(), isRescued: false };
    const { entries } = found;
    const taker = {
      take: (key: Buffer, value: Buffer) => {
        if (isWhole(key, value)) entries.set(key.toString('latin1'), value.toString('latin1'));
      },
      takeRescued: (key: Buffer, value: Buffer) => {
        found.isRescued = true;
        const text = key.toString('latin1');
        if (!entries.has(text)) entries.set(text, value.toString('latin1'));
      },
    };
    for (const _page of rescueEntries(file, file.readLikelyMetas()[0]!, taker));
    file.close();
    return found;
  }

  function pageOf(kind: MappedPage['kind'], space: number): MappedPage {
    const some = pages.filter((page) => page.kind === kind && page.key[0] === space);
    some.sort((a, b) => a.key.compare(b.key));
    return some[Math.floor(some.length / 4)]!;
  }

  /** Changes a bit of every copy of the text in pages that are in use. */
  function damageText(dataDir: string, text: string): void {
    const bytes = readFileSync(join(dataDir, DATA_FILE));
    for (let at = bytes.indexOf(text); at >= 0; at = bytes.indexOf(text, at + 1)) {
      if (pages[Math.floor(at / PAGE_BYTES)]!.kind !== 'unused') flipBit(dataDir, at, 0);
    }
  }

  function damageRecord(dataDir: string, ns: string): void {
    const path = join(dataDir, DATA_FILE);
    const bytes = readFileSync(path);
    for (const { number } of pages.filter(({ kind, key }) => kind === 'leaf' && key[0]! <= COLLECTION_SPACE)) {
      const page = bytes.subarray(number * PAGE_BYTES, (number + 1) * PAGE_BYTES);
      const key = Buffer.concat([Buffer.from([COLLECTION_SPACE]), Buffer.from(ns)]);
      const at = page.indexOf(key);
      // Behind the key its record begins.
      if (at >= 0) page[at + key.length + 30]! ^= 4;
    }
    writeFileSync(path, bytes);
  }

  /** Repairs, and compares what is there now; `lost`: the ids that are to be missing. */
  async function repaired(dataDir: string, lost: Record<string, number[]>): Promise<RepairReport> {
    const damaged = readFileSync(join(dataDir, DATA_FILE));
    const report = await repairDataFile(dataDir);
    expect(report.problems).not.toEqual([]);
    expect(readFileSync(report.damagedFile!).equals(damaged)).toBe(true);
    expect(existsSync(join(dataDir, 'repairing'))).toBe(false);
    expect(statSync(join(dataDir, DATA_FILE)).mode & 0o777).toBe(statSync(report.damagedFile!).mode & 0o777);
    const engine = openEngine({ dataDir, durability: 'relaxed', countBy: 'isDeleted' });
    const content = await contentOf(engine);
    for (const name of NAMES) {
      const expected = whole[name]!.filter(({ _id }) => !(lost[name] ?? []).includes(_id));
      expect(content[name], name).toEqual(expected);
    }
    await expectUsable(engine, content);
    await engine.close();
    return report;
  }

  /** Documents that are missing without being named, or are others than were stored. */
  async function differenceOf(dataDir: string, report: RepairReport): Promise<unknown[]> {
    const engine = openEngine({ dataDir, durability: 'relaxed', countBy: 'isDeleted' });
    const content = await contentOf(engine);
    const differences = NAMES.flatMap((name) => {
      const ids = report.collections.find(({ ns }) => ns === `d.${name}`)?.ids ?? [];
      const there = new Map((content[name] ?? []).map((item) => [item._id, JSON.stringify(item)]));
      return whole[name]!.filter(
        (item) => there.get(item._id) !== JSON.stringify(item) && !ids.includes(String(item._id)),
      ).map(({ _id }) => `${name} ${_id}`);
    });
    await expectUsable(engine, content);
    await engine.close();
    return differences;
  }

  async function expectUsable(engine: Engine, content: Content): Promise<void> {
    expect(await engine.verify()).toEqual([]);
    expect(engine.damage()).toEqual([]);
    for (const name of NAMES) {
      const items = engine.db('d').collection<Item>(name);
      const some = content[name]!.filter(({ group }) => group === 4);
      expect(await items.countDocuments({ group: 4 })).toBe(some.length);
      expect(await items.find({ group: 4 }).sort({ _id: -1 }).toArray()).toEqual(some.toReversed());
      await items.insertOne({ _id: 100_000, group: 4, slot: 'new', text: 'new', isDeleted: false });
      await items.updateMany({ group: 4 }, { $set: { text: 'changed' } });
      await items.deleteOne({ _id: 100_000 });
    }
    expect(await engine.verify()).toEqual([]);
  }

  async function contentOf(engine: Engine): Promise<Content> {
    const content: Content = {};
    for (const name of NAMES) {
      const items: DataCollection<Item> = engine.db('d').collection(name);
      content[name] = await items.find().sort({ _id: 1 }).toArray();
    }
    return content;
  }
});
