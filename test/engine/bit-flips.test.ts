import { spawn } from 'node:child_process';
import { rmSync, statSync, truncateSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type DataCollection, openEngine } from '../../src/engine/index.js';
import { DOCUMENT_SPACE, INDEX_SPACE } from '../../src/engine/storage/format/key-spaces.js';
import { openRandom } from '../helpers/random.js';
import { openSeed } from '../helpers/seed.js';
import { quietFlips } from './page-map.js';
import { temporaryDir } from './transports.js';

/** BSVC_TEST_FLIPS=1000 for the long form. */
const FLIPS = Number(process.env['BSVC_TEST_FLIPS'] ?? 100);
const SEED = openSeed('flipped bits');
const DOCUMENTS = 1_000;
const PAGE_BYTES = 4096;
const PAGE_HEADER_BYTES = 24;

/**
 * What a child said of one damaged copy: how far it came, what each way of reading gave, what a look at every page
 * found.
 */
interface Outcome {
  flipped: string;
  deep?: string[];
  reads?: Record<string, string>;
  done?: boolean;
}

/** Files up to 8 MB are looked through when they are opened, of others each page before it is read. */
const SIZES: [size: string, leastBytes: number, flips: number][] = [
  ['under 8 MB', 0, FLIPS],
  ['over 8 MB', 9 * 1024 * 1024, Math.ceil(FLIPS / 4)],
];

describe.each(SIZES)('a data file %s with a flipped bit', { timeout: 300_000 }, (_size, leastBytes, most) => {
  const dataDir = temporaryDir();
  const copies = temporaryDir();
  const random = openRandom(SEED);
  let whole: Record<string, string>;
  let size: number;

  beforeAll(async () => {
    const engine = openEngine({ dataDir, durability: 'relaxed', countBy: 'isDeleted' });
    const items: DataCollection<Record<string, unknown>> = engine.db('d').collection('items');
    await items.createIndexes([
      { key: { group: 1, n: -1 }, name: 'group' },
      { key: { slot: 1 }, name: 'slot', unique: true },
    ]);
    const docs = Array.from({ length: DOCUMENTS }, (_, n) => ({
      _id: n as never,
      n,
      group: n % 20,
      slot: `s${n}`,
      views: 0,
      isDeleted: n % 9 === 0,
      text: `text ${n} `.repeat(20 + (n % 30)),
    }));
    // One by one: how many of several come into one transaction depends on the time, and where they lie with it.
    for (const doc of docs) await items.insertOne(doc);
    await items.insertOne({
      _id: DOCUMENTS as never,
      group: 3,
      slot: 'large',
      isDeleted: false,
      text: 'x'.repeat(60_000),
    });
    for (let n = 0; n < DOCUMENTS; n += 7) await items.updateOne({ _id: n as never }, { $set: { text: 'short' } });
    for (let n = 3; n < DOCUMENTS; n += 31) await items.deleteOne({ _id: n as never });
    await engine.close();
    const file = join(dataDir, 'bsvc.mdb');
    size = statSync(file).size;
    truncateSync(file, Math.max(size, leastBytes));
    const [outcome] = await readCopies(['0:-1']);
    whole = outcome!.reads!;
    expect(outcome!.deep).toEqual([]);
    expect(Object.values(whole).filter((read) => read.startsWith('error'))).toEqual([]);
  });

  afterAll(() => {
    rmSync(dataDir, { recursive: true, force: true });
    rmSync(copies, { recursive: true, force: true });
  });

  it('reads as before, or says what is damaged: anywhere in the file', async () => {
    const flips = Array.from({ length: most }, () => `${random.below(size)}:${random.below(8)}`);
    judge(await readCopies(flips));
  });

  it('reads as before, or says what is damaged: in the headers of pages', async () => {
    const pages = Math.floor(size / PAGE_BYTES);
    const flips = Array.from(
      { length: Math.ceil(most / 4) },
      () => `${random.below(pages) * PAGE_BYTES + random.below(PAGE_HEADER_BYTES)}:${random.below(8)}`,
    );
    judge(await readCopies(flips));
  });

  it('says what is damaged: in keys that stay in their order', async () => {
    const flips = quietFlips(dataDir, [DOCUMENT_SPACE, INDEX_SPACE]);
    // Of documents and of each index as many, half of them at the ends of what reads of one value read.
    const owners = [...flips.values()].map((some) => some.toSorted((a, b) => a.shared - b.shared));
    expect(owners).toHaveLength(3);
    const picked = Array.from({ length: Math.ceil(FLIPS / 3) }, (_, n) => {
      const some = owners[n % owners.length]!;
      return some[random.below(random.chance(0.5) ? some.length : Math.ceil(some.length / 20))]!;
    });
    judge(await readCopies(picked.map(({ at, bit }) => `${at}:${bit}`)), { damaged: picked.length });
  });

  /**
   * What a read gives without an error must be right, no process may die of it, and the look at every page must find
   * it.
   */
  function judge(outcomes: Outcome[], expected: { damaged?: number } = {}): void {
    const figures = { same: 0, told: 0, silent: [] as unknown[], crashed: [] as unknown[], unnamed: [] as unknown[] };
    for (const { flipped, deep, reads, done } of outcomes) {
      const found = deep ?? [];
      const differing = Object.entries(reads ?? {}).filter(([name, read]) => whole[name] !== read);
      const silent = differing.filter(([, read]) => !read.startsWith('error'));
      if (done !== true) figures.crashed.push({ flipped, found, reads });
      if (silent.length > 0) figures.silent.push({ flipped, found, silent });
      if (differing.length > 0 && found.length === 0) figures.unnamed.push({ flipped, differing });
      if (differing.length === 0 && done === true) figures.same++;
      else figures.told++;
    }
    expect(figures).toEqual({ ...figures, silent: [], crashed: [], unnamed: [] });
    if (expected.damaged === undefined) expect(figures.same).toBeGreaterThan(0);
    expect(figures.told).toBeGreaterThanOrEqual(expected.damaged ?? 1);
  }

  /** Lets a child read the copies, and another one those behind a copy that ended it. */
  async function readCopies(flips: readonly string[]): Promise<Outcome[]> {
    const outcomes: Outcome[] = [];
    for (let left = flips; left.length > 0; left = flips.slice(outcomes.length)) {
      const before = outcomes.length;
      outcomes.push(...(await runChild(left)));
      if (outcomes.length === before) throw new Error('the child did nothing');
    }
    return outcomes;
  }

  function runChild(flips: readonly string[]): Promise<Outcome[]> {
    const script = join(import.meta.dirname, 'flip-reader.ts');
    const child = spawn(process.execPath, ['--import', 'tsx', script, dataDir, copies, flips.join(',')], {
      stdio: ['ignore', 'pipe', 'ignore'],
    });
    const outcomes = new Map<string, Outcome>();
    let rest = '';
    child.stdout.on('data', (chunk: Buffer) => {
      const lines = (rest + chunk.toString()).split('\n');
      rest = lines.pop()!;
      for (const line of lines) {
        const outcome = JSON.parse(line) as Outcome;
        outcomes.set(outcome.flipped, outcome);
      }
    });
    return new Promise((resolve, reject) => {
      child.on('error', reject);
      child.on('close', () => {
        resolve([...outcomes.values()]);
      });
    });
  }
});
