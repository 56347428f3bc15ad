import { copyFileSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { DATA_FILE, openEngine, repairDataFile } from '../../index.js';
import { openRandom } from '../helpers/random.js';
import { openSeed } from '../helpers/seed.js';
import { PAGE_BYTES } from '../page-map.js';
import { temporaryDir } from '../transports.js';

/** BSVC_TEST_FLIPS=200 for the long form. */
const ROUNDS = Number(process.env['BSVC_TEST_FLIPS'] ?? 25);
const SEED = openSeed('repairs of earlier pages');
const NAMES = ['cards', 'boards', 'dropped'];

interface Card {
  _id: number;
  board: number;
  version: number;
  text: string;
}

/**
 * A page that holds an earlier state, or another page, is well-formed: a write was lost, or went to the wrong place.
 * What a repair finds there may have been deleted or changed since.
 */
describe('the repair of a store with pages of earlier times', () => {
  const random = openRandom(SEED);
  const source = temporaryDir();
  const states: Buffer[] = [];
  const stored = new Map<string, string>();
  const dirs: string[] = [source];

  beforeAll(async () => {
    const engine = openEngine({ dataDir: source, durability: 'relaxed' });
    const db = engine.db('d');
    const write = async (round: number): Promise<void> => {
      for (const name of NAMES.slice(0, round < 4 ? 3 : 2)) {
        const cards = db.collection<Card>(name);
        await cards.insertMany(
          Array.from({ length: 300 }, (_, n) => ({ _id: round * 1000 + n, board: n % 13, version: 0, text: textOf() })),
        );
        await cards.updateMany({ board: round }, { $set: { text: textOf() }, $inc: { version: 1 } });
        await cards.deleteMany({ board: (round * 5) % 13 });
        if (random.below(2) === 0) await cards.deleteMany({ _id: { $lt: round * 400 } });
      }
      if (round === 4) await db.collection('dropped').drop();
    };
    for (const name of NAMES) {
      await db.collection<Card>(name).createIndexes([
        { key: { board: 1, _id: -1 }, name: 'board' },
        { key: { version: 1 }, name: 'version' },
      ]);
    }
    for (let round = 0; round < 9; round++) {
      await write(round);
      states.push(readFileSync(join(source, DATA_FILE)));
    }
    for (const name of NAMES) {
      for (const card of await db.collection<Card>(name).find().toArray()) {
        stored.set(`${name} ${card._id}`, JSON.stringify(card));
      }
    }
    await engine.close();
    states.push(readFileSync(join(source, DATA_FILE)));
  });
  afterAll(() => {
    for (const dir of dirs) rmSync(dir, { recursive: true, force: true });
  });

  it(`brings nothing back that was deleted or changed, and counts what is missing: ${ROUNDS} times`, async () => {
    const sums = { rounds: 0, repaired: 0, lost: 0, uncertain: 0, refused: 0 };
    for (let round = 0; round < ROUNDS; round++) {
      const { dataDir, what } = damaged();
      sums.rounds++;
      const report = await repairDataFile(dataDir).catch((error: unknown) => {
        // No beginning that could be read.
        expect((error as { code?: string }).code, what).toBe('FOREIGN');
        return null;
      });
      if (report === null || report.problems.length === 0) {
        sums.refused += report === null ? 1 : 0;
        continue;
      }
      sums.repaired++;
      const engine = openEngine({ dataDir, durability: 'relaxed' });
      expect(await engine.verify(), what).toEqual([]);
      const there = new Set<string>();
      const brought: string[] = [];
      const names = new Set((await engine.db('d').collections()).map(({ collectionName }) => collectionName));
      for (const name of NAMES) {
        for (const card of await engine.db('d').collection<Card>(name).find().toArray()) {
          const id = `${name} ${card._id}`;
          there.add(id);
          if (stored.get(id) !== JSON.stringify(card)) brought.push(id);
        }
      }
      await engine.close();
      expect(brought, what).toEqual([]);
      for (const name of NAMES) {
        const missing = [...stored.keys()].filter((id) => id.startsWith(`${name} `) && !there.has(id));
        const found = report.collections.find(({ ns }) => ns === `d.${name}`);
        if (missing.length > 0 && !names.has(name)) {
          // Nothing is left of its record: its documents are in a collection of their own.
          const recovered = report.collections.filter(({ ns }) => ns.startsWith('recovered.'));
          expect(recovered.length, `${name}, ${what}`).toBeGreaterThan(0);
          continue;
        }
        expect(missing.length, `${name}, ${what}`).toBeLessThanOrEqual(found?.lost ?? (found ? Infinity : 0));
        sums.lost += missing.length;
        sums.uncertain += found?.uncertain ?? 0;
      }
      rmSync(dataDir, { recursive: true });
    }
    console.log(`repairs of earlier pages: ${JSON.stringify(sums)}`);
    expect(sums.repaired).toBeGreaterThan(ROUNDS / 10);
  });

  /** A copy of the store in which one page is an earlier one, another, or has a flipped bit. */
  function damaged(): { dataDir: string; what: string } {
    const dataDir = temporaryDir();
    dirs.push(dataDir);
    mkdirSync(dataDir, { recursive: true });
    copyFileSync(join(source, DATA_FILE), join(dataDir, DATA_FILE));
    const bytes = readFileSync(join(dataDir, DATA_FILE));
    const pages = Math.floor(bytes.length / PAGE_BYTES);
    const page = 2 + random.below(pages - 2);
    const kind = random.below(3);
    const earlier = states[random.below(states.length - 1)]!;
    const at = kind === 1 ? 2 + random.below(pages - 2) : page;
    const from = (kind === 0 ? earlier : bytes).subarray(page * PAGE_BYTES, (page + 1) * PAGE_BYTES);
    if (kind < 2 && from.length === PAGE_BYTES) from.copy(bytes, at * PAGE_BYTES);
    else bytes[page * PAGE_BYTES + random.below(random.below(2) === 0 ? 24 : PAGE_BYTES)]! ^= 1 << random.below(8);
    writeFileSync(join(dataDir, DATA_FILE), bytes);
    return { dataDir, what: `${['earlier', 'another', 'flipped'][kind]} ${page} at ${at}, seed ${SEED}` };
  }

  function textOf(): string {
    return 'text '.repeat(4 + random.below(60));
  }
});
