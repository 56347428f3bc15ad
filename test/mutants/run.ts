import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { Stryker } from '@stryker-mutator/core';
import { killDescendants } from '../helpers/process-tree.js';
import { ROOMS } from './rooms.js';

/*
 *   npm run mutants -- <room> [--every N] [--sample K] [--file NAME]
 *
 * Puts faults into the room's source, one at a time, and says which of them its tests do not notice. With `--every` a
 * sample: of N blocks of lines one, another one each day. `--sample` says which, so that it can be measured again. The
 * report is `coverage/mutants-<room>.json`.
 */

const BLOCK_LINES = 8;
const ROOT = join(import.meta.dirname, '..', '..');

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    every: { type: 'string', default: '1' },
    sample: { type: 'string' },
    file: { type: 'string', default: '' },
  },
});
const [name = ''] = positionals;
const room = ROOMS[name];
if (!room) {
  console.error(`npm run mutants -- <room>: one of ${Object.keys(ROOMS).join(', ')}`);
  process.exit(2);
}
const every = Number(values.every);
const sample = Number(values.sample ?? Math.floor(Date.now() / 86_400_000) % every);

// What tests leave that were ended with their process goes with this folder.
const temporary = mkdtempSync(join(tmpdir(), 'bsvc-mutants-'));
process.env.TMPDIR = temporary;
process.on('exit', () => {
  killDescendants(process.pid);
  rmSync(temporary, { recursive: true, force: true, maxRetries: 5 });
});

process.env.BSVC_MUTANTS_TESTS = room.tests
  .map((test) => `${test.startsWith('src/') ? '' : 'test/'}${test}.test.ts`)
  .join(',');
process.env.BSVC_MUTANTS_HANG_MS = `${room.hangsAfterMs ?? 60_000}`;
const stryker = new Stryker({
  mutate: room.source.flatMap(listFiles).flatMap(listBlocks),
  testRunner: 'vitest',
  vitest: { configFile: 'test/mutants/vitest.config.ts', related: false },
  coverageAnalysis: 'perTest',
  concurrency: 1,
  // Texts are held by the tests of the contract, word by word.
  mutator: { excludedMutations: ['StringLiteral'] },
  ignoreStatic: true,
  timeoutMS: 20_000,
  reporters: ['clear-text', 'json', 'progress-append-only'],
  clearTextReporter: { logTests: false, reportTests: false, allowColor: false },
  jsonReporter: { fileName: `coverage/mutants-${name}.json` },
  ignorePatterns: ['coverage', 'dist', 'bsvc-data'],
  tempDirName: 'coverage/mutants',
  allowEmpty: true,
});
const results = await stryker.runMutationTest();
const counted = results.filter(({ status }) => status !== 'Ignored' && status !== 'CompileError');
const killed = counted.filter(({ status }) => status === 'Killed' || status === 'Timeout').length;
console.log(
  `${name}, sample ${sample} of ${every}: ${killed} of ${counted.length} mutants noticed, ` +
    `${((100 * killed) / counted.length).toFixed(1)} %`,
);

function listFiles(source: string): string[] {
  const names = readdirSync(join(ROOT, 'src', source), { recursive: true, encoding: 'utf8' });
  return names
    .filter((file) => file.endsWith('.ts') && file.includes(values.file))
    .map((file) => `src/${source}/${file}`);
}

/** The file, or the blocks of it that are in the sample. */
function listBlocks(path: string): string[] {
  if (every <= 1) return [path];
  const lines = readFileSync(join(ROOT, path), 'utf8').split('\n').length;
  const blocks = Array.from({ length: Math.ceil(lines / BLOCK_LINES) }, (_, at) => at);
  const offset = [...path].reduce((sum, letter) => sum + letter.charCodeAt(0), sample);
  return blocks
    .filter((at) => (at + offset) % every === 0)
    .map((at) => `${path}:${at * BLOCK_LINES + 1}-${(at + 1) * BLOCK_LINES}`);
}
