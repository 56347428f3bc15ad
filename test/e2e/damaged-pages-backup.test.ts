import { copyFileSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { buildCollection, buildProject } from '../helpers/build-project.js';
import { migrate } from '../world/app.js';
import { DATA_FILE, openEngine, verifyDataFile } from '../world/engine.js';
import { openRandom } from '../helpers/random.js';
import { runBinary } from '../helpers/run-binary.js';
import { openSeed } from '../helpers/seed.js';
import { openTempDir, type TempDir } from '../helpers/temp-dir.js';
import { withApp } from '../helpers/with-app.js';

const PAGE_BYTES = 4096;
/** BSVC_TEST_FLIPS=200 for the long form. */
const ROUNDS = Number(process.env.BSVC_TEST_FLIPS ?? 8);
const DOCUMENTS = 12_000;
const SEED = openSeed('backups of damaged pages');

/** A store of more than 8 MB, in which pages are other ones, earlier ones, or have a flipped bit in their head. */
describe('a backup of a store with damaged pages', () => {
  const random = openRandom(SEED);
  let dir: TempDir;
  let source: string;
  let earlier: Buffer;

  beforeAll(async () => {
    dir = await openTempDir();
    source = join(dir.path, 'source');
    const env = { BSVC_DATA_DIR: source, BSVC_DURABILITY: 'relaxed' };
    await withApp(env, async (app) => {
      await migrate(app.db);
      const { project } = await buildProject(app);
      await buildCollection(app, project, { name: 'posts' });
    });
    const engine = openEngine({ dataDir: source, durability: 'relaxed', countBy: 'isDeleted' });
    const items = engine.db('bsvc').collection<{ _id: number; text: string }>('items');
    await items.insertMany(Array.from({ length: DOCUMENTS }, (_, n) => ({ _id: n, text: `text ${n} `.repeat(60) })));
    earlier = readFileSync(join(source, DATA_FILE));
    await items.deleteMany({ _id: { $gt: DOCUMENTS / 2 } });
    await items.insertMany(
      Array.from({ length: DOCUMENTS }, (_, n) => ({ _id: -1 - n, text: `more ${n} `.repeat(60) })),
    );
    await engine.close();
    expect(readFileSync(join(source, DATA_FILE)).length).toBeGreaterThan(8 * 1024 * 1024);
  });
  afterAll(() => dir.remove());

  it(`ends with words and no file, or is whole: ${ROUNDS} stores`, async () => {
    const ends = { refused: 0, made: 0, killed: 0 };
    for (let round = 0; round < ROUNDS; round++) {
      const dataDir = join(dir.path, `store ${round}`);
      const out = join(dir.path, `${round}.backup`);
      mkdirSync(dataDir);
      if (existsSync(join(source, 'secret.key'))) copyFileSync(join(source, 'secret.key'), join(dataDir, 'secret.key'));
      const what = damage(dataDir);
      const isWhole = (await verifyDataFile(dataDir)).length === 0;
      const env = { BSVC_DATA_DIR: dataDir, BSVC_DURABILITY: 'relaxed' };
      const back = (): ReturnType<typeof runBinary> => runBinary(['backup', '--out', out], { env });
      let made = await back();
      if (made.code === null) {
        // LMDB may end the process that meets a damaged page first: the next one looks at all pages beforehand.
        ends.killed++;
        made = await back();
      }
      const ended = `${what}: ${made.code} ${made.stderr}`;
      // A signal would be null.
      expect([0, 1, 3], ended).toContain(made.code);
      if (made.code === 0) {
        ends.made++;
      } else {
        ends.refused++;
        expect(made.stderr, ended).toMatch(/damaged/);
        expect(existsSync(out), ended).toBe(false);
      }
      if (isWhole) expect(made.code, ended).toBe(0);
    }
    console.log(`backups of damaged pages: ${JSON.stringify(ends)}`);
    expect(ends.refused).toBeGreaterThan(0);
    expect(ends.killed).toBeLessThanOrEqual(1);
  });

  function damage(dataDir: string): string {
    const bytes = readFileSync(join(source, DATA_FILE));
    const what: string[] = [];
    for (let n = random.pick([1, 1 + random.below(40)]); n > 0; n--) {
      // Where LMDB keeps branches is not known here: many pages are hit, so that some are.
      const page = 2 + random.below(Math.floor(bytes.length / PAGE_BYTES) - 2);
      const wasThere = (page + 1) * PAGE_BYTES <= earlier.length;
      const kind = random.pick([wasThere ? 'earlier' : 'another', 'another', 'flipped']);
      if (kind === 'earlier') earlier.copy(bytes, page * PAGE_BYTES, page * PAGE_BYTES, (page + 1) * PAGE_BYTES);
      else if (kind === 'another') bytes.copyWithin(page * PAGE_BYTES, 2 * PAGE_BYTES, 3 * PAGE_BYTES);
      else bytes[page * PAGE_BYTES + random.below(24)]! ^= 1 << random.below(8);
      what.push(`${kind} ${page}`);
    }
    writeFileSync(join(dataDir, DATA_FILE), bytes);
    return `seed ${SEED}, ${what.join(', ')}`;
  }
});
