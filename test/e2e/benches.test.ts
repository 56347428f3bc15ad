import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { openRandom } from '../helpers/random.js';
import { openSeed } from '../helpers/seed.js';

const ROOT = join(import.meta.dirname, '..', '..');

/** Benchmarks by their file in `test/bench`, with the fewest requests that they can do with; none installs anything. */
const BENCHES: readonly [name: string, options: string[]][] = [
  ['accounts', ['1', '1', '10']],
  ['heavy-reads', ['200', '0.1']],
  ['public', ['20', '0.2']],
  ['rules', ['60', '1', '4']],
  ['start', ['--documents', '200', '--rounds', '1', '--alone']],
  ['writes', ['1', '4']],
];
describe('a benchmark', () => {
  // With each commit another one is tried.
  const random = openRandom(openSeed('benches'));
  it.each([random.pick(BENCHES)])('%s still comes to its figures', async (name, options) => {
    const script = ['--import', 'tsx', '--import', './test/bench/end-started.ts', `test/bench/${name}.ts`];
    const child = spawn(process.execPath, [...script, ...options], { cwd: ROOT, stdio: ['ignore', 'pipe', 'pipe'] });
    let printed = '';
    let errors = '';
    child.stdout.on('data', (text: Buffer) => (printed += text.toString()));
    child.stderr.on('data', (text: Buffer) => (errors += text.toString()));
    const [code] = (await once(child, 'close')) as [number | null];
    expect([code, code === 0 ? '' : errors]).toEqual([0, '']);
    expect(printed).toMatch(/\d/);
  });
});
