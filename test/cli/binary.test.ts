import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { eventually } from '../helpers/eventually.js';
import { BINARY, runBinary } from '../helpers/run-binary.js';
import { openTempDir } from '../helpers/temp-dir.js';
import { use } from '../helpers/use.js';

const dir = use(await openTempDir());
const env: Record<string, string> = { BSVC_DATA_DIR: dir.path, BSVC_PROJECT: 'shop', BSVC_DURABILITY: 'relaxed' };
await runBinary(['project', 'create', 'shop'], { env });
await runBinary(['collection', 'add', 'notes', '--flexible'], { env });

describe('the bsvc binary', () => {
  it('prints help and its version', async () => {
    expect(await runBinary([])).toMatchObject({
      code: 0,
      stderr: '',
      stdout: expect.stringContaining('Usage: bsvc') as string,
    });
    expect((await runBinary(['--version'])).stdout).toMatch(/^\d+\.\d+\.\d+\n$/);
  });

  it('works from any directory, with a relative data directory meant from there', async () => {
    const made = await runBinary(['project', 'create', 'here', '--data-dir', 'sub/data', '--quiet'], { cwd: dir.path });
    expect(made).toMatchObject({ code: 0, stderr: '' });
    const found = await runBinary(['project', 'list', '--quiet'], { env: { BSVC_DATA_DIR: `${dir.path}/sub/data` } });
    expect(found.stdout).toBe(made.stdout);
  });

  it.each([['--env-file', 'absent.env'], ['--env-file=absent.env']])(
    'answers itself when its settings file is missing (%s): exit 2',
    async (...words) => {
      // As a shell starts it, by its first line.
      const child = spawn(BINARY, [...words, 'project', 'list'], {
        env: { ...env, PATH: process.env.PATH },
        cwd: dir.path,
      });
      let stderr = '';
      child.stderr.setEncoding('utf8').on('data', (text: string) => (stderr += text));
      const [code] = (await once(child, 'close')) as [number];
      expect([code, stderr]).toEqual([2, 'bsvc: --env-file names absent.env, but there is no such file.\n']);
    },
  );

  it('says that the current directory has been removed', async () => {
    const gone = mkdtempSync(join(dir.path, 'gone-'));
    const line = `rmdir "${gone}" && exec "${BINARY}" project list`;
    const child = spawn('sh', ['-c', line], { env: { ...env, PATH: process.env.PATH }, cwd: gone });
    let stderr = '';
    child.stderr.setEncoding('utf8').on('data', (text: string) => (stderr += text));
    const [code] = (await once(child, 'close')) as [number];
    const said = 'bsvc: The current directory does not exist any more. Change to another one.\n';
    // Behind what the shells say of it themselves.
    expect([code, stderr.slice(-said.length), stderr.includes('    at ')]).toEqual([1, said, false]);
  });

  it('never waits for input without a terminal: exit 2', async () => {
    for (const words of [
      ['project', 'create'],
      ['key', 'create'],
      ['collection', 'show'],
      ['project', 'delete', 'shop'],
    ]) {
      expect({ words, code: (await runBinary(words, { env })).code }).toEqual({ words, code: 2 });
    }
  });

  it('is exit 2 for an unknown flag, with the nearest right one', async () => {
    const { code, stderr } = await runBinary(['project', 'list', '--jsn']);
    expect({ code, stderr }).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('Did you mean --json?') as string,
    });
  });

  it('is exit 3 before the half minute that a driver waits by itself when MongoDB cannot be reached', async () => {
    const unreachable = { ...env, MONGODB_URI: 'mongodb://127.0.0.1:1', BSVC_SECRET_KEY: 'k'.repeat(40) };
    const stop = AbortSignal.timeout(25_000);
    const { code, stdout, stderr } = await runBinary(['project', 'list', '--json'], {
      env: unreachable,
      onStart: (child) => stop.addEventListener('abort', () => child.kill('SIGKILL')),
    });
    const [line, json] = stderr.split('\n');
    expect({ code, stdout }).toEqual({ code: 3, stdout: '' });
    expect(line).toContain('MONGODB_URI');
    expect(JSON.parse(json!)).toMatchObject({ success: false });
  });

  it('ends quietly with exit 0 when nobody reads its output any more', async () => {
    const lines = Array.from({ length: 20_000 }, (_, n) => `{"n":${n},"text":"${'x'.repeat(100)}"}\n`).join('');
    await runBinary(['data', 'import', 'notes', '-', '--format', 'ndjson'], { env, stdin: lines });
    const child = spawn(process.execPath, [BINARY, 'data', 'export', 'notes'], {
      env: { PATH: process.env.PATH!, ...env },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    let stderr = '';
    child.stderr.setEncoding('utf8').on('data', (text: string) => (stderr += text));
    child.stdout.once('data', () => child.stdout.destroy());
    const [code] = (await once(child, 'close')) as [number];
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  });

  it.each(['SIGINT', 'SIGTERM', 'SIGHUP'] as const)('is 130 when interrupted by %s', async (signal) => {
    const child = spawn(process.execPath, [BINARY, 'data', 'import', 'notes', '-', '--format', 'ndjson'], {
      env: { PATH: process.env.PATH!, ...env },
      stdio: ['pipe', 'pipe', 'pipe'],
    });
    let stderr = '';
    child.stderr.setEncoding('utf8').on('data', (text: string) => (stderr += text));
    // It reads on for as long as there is something to read; the pipe stays open, so it is at work when the signal
    // comes.
    child.stdin.on('error', () => undefined);
    const feed = setInterval(() => child.stdin.write('{"fed":true}\n'.repeat(100)), 5);
    await untilDocumentIsStored();
    child.kill(signal);
    const [code] = (await once(child, 'close')) as [number];
    clearInterval(feed);
    expect(code).toBe(130);
    expect(stderr).toMatch(/^bsvc: Interrupted\. (\d+) documents stored\. To go on, run it again with --skip \1\.\n$/);
  });
});

async function untilDocumentIsStored(): Promise<void> {
  await eventually('a document is stored', async () => {
    const { stdout } = await runBinary(['data', 'query', 'notes', '--filter', 'fed=true', '--count'], { env });
    return Number(stdout) > 0;
  });
}
