import { readFileSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { findFreePort } from '../helpers/listen.js';
import { runShell } from '../helpers/run-shell.js';
import { openTempDir, type TempDir } from '../helpers/temp-dir.js';

const ROOT = join(import.meta.dirname, '..', '..');
const readme = readFileSync(join(ROOT, 'README.md'), 'utf8');
const tour = /<!-- tour -->([\s\S]*?)<!-- \/tour -->/.exec(readme)![1]!;
const blocks = [...tour.matchAll(/```sh\n([\s\S]*?)```/g)].map(([, block]) => block!);

let dir: TempDir;
beforeAll(async () => {
  dir = await openTempDir();
  // A checkout to stand in, without leaving anything in this one.
  symlinkSync(join(ROOT, 'node_modules'), join(dir.path, 'node_modules'));
});
afterAll(() => dir.remove());

describe('the tour in README.md', () => {
  it('does what it says, pasted as a whole', async () => {
    const port = String(await findFreePort());
    const script = blocks.join('\n').replace('BSVC_PORT=4000', `BSVC_PORT=${port}`);
    // As if typed: -m gives it the job numbers of an interactive shell.
    const careful = `trap 'kill $(jobs -p) 2>/dev/null' EXIT; trap 'exit 1' TERM\n${script}`;
    const words = ['-m', '-o', 'pipefail', '-c', careful];
    const { code, output } = await runShell(dir.path, words, { BSVC_LOG_LEVEL: 'warn' }, 150_000);
    expect({ code, output }).toMatchObject({ code: 0 });
    for (const said of [
      `bsvc is listening on http://127.0.0.1:${port}`,
      '"status":"ok"',
      'Created project atlas',
      'Imported 250 documents into countries.',
      '"common":"Australia"',
      '{"success":true,"data":{"count":45}',
      '"common":"Vietnam"',
      '"rating":3',
      'Validation failed: rating must be a Number',
      '"code":"WRITE_BLOCKED"',
      '"rating":5',
      'Document recovered from trash',
      '_id,country,rating,day,createdAt,updatedAt',
      'to tour-schema.json',
    ]) {
      expect(output).toContain(said);
    }
    expect(output).not.toContain('command not found');
  }, 180_000);
});
