import { spawn } from 'node:child_process';
import { mkdirSync, rmSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { buildSync } from 'esbuild';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { openEngine } from '../../../src/engine/index.js';
import { DATA_FILE } from '../../../src/engine/storage/file/environment.js';
import { openSeed } from '../../helpers/seed.js';
import { temporaryDir } from '../transports.js';
import { DOCUMENTS, GROUPS, type Stored } from './damaged-store.js';

/** BSVC_TEST_RUNS=4000 is the long form: rounds of each process. */
const ROUNDS = Number(process.env['BSVC_TEST_RUNS'] ?? 150);
const PROCESSES = 3;
const SEED = openSeed('side by side');

const built = join(import.meta.dirname, '..', '..', '..', 'node_modules', `.side-by-side-${process.pid}`);
const program = join(built, 'process.mjs');
const dataDir = temporaryDir();

beforeAll(async () => {
  mkdirSync(built, { recursive: true });
  buildSync({
    entryPoints: [join(import.meta.dirname, 'side-by-side-process.ts')],
    outfile: program,
    bundle: true,
    platform: 'node',
    format: 'esm',
    packages: 'external',
  });
  const engine = openEngine({ dataDir, durability: 'relaxed', countBy: 'isDeleted' });
  const items = engine.db('d').collection<Stored>('a');
  await items.createIndexes([
    { key: { group: 1, _id: -1 }, name: 'group' },
    { key: { slot: 1 }, name: 'slot', unique: true },
  ]);
  const doc = (n: number): Stored => ({
    _id: n,
    group: n % GROUPS,
    slot: `a ${n}`,
    views: 0,
    isDeleted: false,
    text: 'text '.repeat(n % 3 === 0 ? 4_000 : 400),
  });
  await items.insertMany(Array.from({ length: 3 * DOCUMENTS }, (_, n) => doc(n)));
  await engine.close();
  expect(statSync(join(dataDir, DATA_FILE)).size).toBeGreaterThan(8 * 1024 * 1024);
});
afterAll(() => {
  for (const dir of [dataDir, built]) rmSync(dir, { recursive: true, force: true });
});

interface Report {
  made: number;
  errors: string[];
  failed: number;
  wrong: string[];
}

function run(seed: number): Promise<Report> {
  const child = spawn(process.execPath, [program, dataDir, String(seed), String(ROUNDS)], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  let output = '';
  child.stdout.on('data', (chunk: Buffer) => (output += chunk.toString()));
  return new Promise((resolve, reject) => {
    child.on('error', reject);
    child.on('close', (code, signal) => {
      if (code === 0) resolve(JSON.parse(output) as Report);
      else reject(new Error(`a process ended with ${String(code ?? signal)}`));
    });
  });
}

it('finds no damage in a whole store while several processes write to it', { timeout: 3_600_000 }, async () => {
  const reports = await Promise.all(Array.from({ length: PROCESSES }, (_, n) => run(SEED + n)));
  const made = reports.reduce((sum, report) => sum + report.made, 0);
  console.log(`${made} rounds of ${PROCESSES} processes`);
  expect(reports.map(({ errors, failed, wrong }) => ({ errors, failed, wrong }))).toEqual(
    reports.map(() => ({ errors: [], failed: 0, wrong: [] })),
  );
  expect(made).toBe(PROCESSES * ROUNDS);
  const engine = openEngine({ dataDir, durability: 'relaxed', countBy: 'isDeleted' });
  expect(await engine.verify()).toEqual([]);
  await engine.close();
});
