import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { missingLines, readExamples } from '../helpers/guide-examples.js';
import { findFreePort } from '../helpers/listen.js';
import { runShell } from '../helpers/run-shell.js';
import { openTempDir, type TempDir } from '../helpers/temp-dir.js';

const readme = readFileSync(join(import.meta.dirname, '..', '..', 'README.md'), 'utf8');

let dir: TempDir;
beforeAll(async () => {
  dir = await openTempDir();
});
afterAll(() => dir.remove());

/** What the part of the README prints, which ends with `ends`. */
async function runPart(name: string, ends: number): Promise<string> {
  const part = new RegExp(`<!-- ${name} -->([\\s\\S]*?)<!-- /${name} -->`).exec(readme)![1]!;
  const examples = readExamples(part);
  const [port, receiver] = [await findFreePort(), await findFreePort()];
  const moved = (text: string): string =>
    text
      .replaceAll('localhost:4000', `localhost:${port}`)
      .replaceAll('PORT=4000', `PORT=${port}`)
      .replaceAll(':9000', `:${receiver}`)
      .replaceAll('listen(9000)', `listen(${receiver})`);
  const script = moved(examples.map(({ text }) => text).join('\n'));
  // As if typed: -m gives it the job numbers of an interactive shell.
  const careful = `trap 'kill $(jobs -p) 2>/dev/null || true' EXIT; trap 'exit 1' TERM\n${script}`;
  const { code, output } = await runShell(dir.path, ['-m', '-o', 'pipefail', '-c', careful], {}, 280_000);
  for (const { shown } of examples) expect([missingLines(moved(shown ?? ''), output), output]).toEqual([[], output]);
  expect({ code, output }).toEqual({ code: ends, output });
  return output;
}

describe('README.md', () => {
  it('has a picture of a terminal that shows what the commands print', async () => {
    await runPart('picture', 2);
  }, 300_000);

  it('has a tour that does what it says, pasted as a whole', async () => {
    const output = await runPart('tour', 0);
    expect(output).toMatch(/_id,text,photo,userId,/);
  }, 300_000);
});
