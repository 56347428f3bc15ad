import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, mkdirSync, readFileSync, symlinkSync } from 'node:fs';
import { createServer, type AddressInfo } from 'node:net';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { BINARY } from '../helpers/run-binary.js';
import { openTempDir, type TempDir } from '../helpers/temp-dir.js';

const ROOT = join(import.meta.dirname, '..', '..');
const readme = readFileSync(join(ROOT, 'README.md'), 'utf8');
const tour = /<!-- tour -->([\s\S]*?)<!-- \/tour -->/.exec(readme)![1]!;
const blocks = [...tour.matchAll(/```sh\n([\s\S]*?)```/g)].map(([, block]) => block!);

let dir: TempDir;
beforeAll(async () => {
  dir = await openTempDir();
  // What ./install.sh would have linked, and a checkout to stand in, without leaving anything in this one.
  mkdirSync(join(dir.path, 'bin'));
  symlinkSync(BINARY, join(dir.path, 'bin', 'bsvc'));
  symlinkSync(join(ROOT, 'node_modules'), join(dir.path, 'node_modules'));
  chmodSync(BINARY, 0o755);
});
afterAll(() => dir.remove());

describe('the tour in README.md', () => {
  it('does what it says, pasted as a whole', async () => {
    const port = String(await findFreePort());
    const script = blocks.join('\n').replace('BSVC_PORT=4000', `BSVC_PORT=${port}`);
    const { code, output } = await paste(script);
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

/** Runs the text in a shell as if typed; -m gives it the job numbers of an interactive one. */
async function paste(script: string): Promise<{ code: number | null; output: string }> {
  const careful = `trap 'kill $(jobs -p) 2>/dev/null' EXIT; trap 'exit 1' TERM\n${script}`;
  const shell = spawn('bash', ['-m', '-o', 'pipefail', '-c', careful], {
    cwd: dir.path,
    env: { PATH: `${join(dir.path, 'bin')}:${process.env.PATH}`, HOME: dir.path, BSVC_LOG_LEVEL: 'warn' },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let output = '';
  for (const stream of [shell.stdout, shell.stderr]) {
    stream.setEncoding('utf8').on('data', (text: string) => (output += text));
  }
  const limit = setTimeout(() => shell.kill('SIGTERM'), 150_000);
  const [code] = (await once(shell, 'close')) as [number | null];
  clearTimeout(limit);
  return { code, output };
}

async function findFreePort(): Promise<number> {
  const probe = createServer().listen(0, '127.0.0.1');
  await once(probe, 'listening');
  const { port } = probe.address() as AddressInfo;
  probe.close();
  await once(probe, 'close');
  return port;
}
