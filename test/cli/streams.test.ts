import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { open, readFile, type FileHandle } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { BINARY, runBinary } from '../helpers/run-binary.js';
import { openTerminal, type TerminalSession } from '../helpers/run-terminal.js';
import { openTempDir } from '../helpers/temp-dir.js';
import { use } from '../helpers/use.js';

const CTRL_C = '\u0003';
const SPINNER = /[⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏]/;
const COLOUR = /\u001b\[(?:[34]\d|9\d)m/;
const SHOW_CURSOR = '\u001b[?25h';

const dir = use(await openTempDir());
const env: Record<string, string> = { BSVC_DATA_DIR: dir.path, BSVC_DURABILITY: 'relaxed', BSVC_PROJECT: 'shop' };
await runBinary(['project', 'create', 'shop'], { env });
await runBinary(['collection', 'add', 'notes', '--flexible'], { env });

/** An import that goes on for as long as the file is not closed: there is a spinner, and it is known to be at work. */
async function openImport(
  name: string,
  more: { env?: Record<string, string>; words?: string[]; stdout?: string } = {},
): Promise<{ terminal: TerminalSession; file: FileHandle }> {
  const path = join(dir.path, `${name}.ndjson`);
  execFileSync('mkfifo', [path]);
  const words = ['data', 'import', 'notes', path, '--batch', '100', ...(more.words ?? [])];
  const terminal = openTerminal(words, { ...env, ...more.env }, { stdout: more.stdout });
  const file = await open(path, 'w');
  await file.write('{"n":1}\n'.repeat(1000));
  await terminal.shows(`Importing ${name}.ndjson`);
  await terminal.shows('1000 documents stored, 0 refused');
  return { terminal, file };
}

const readJson = async (path: string): Promise<unknown> => {
  const text = await readFile(path, 'utf8');
  expect(text).toMatch(/^[^\u001b]+\n$/);
  return JSON.parse(text);
};

// The pseudo-terminal is that of util-linux.
describe.runIf(process.platform === 'linux')('with stderr at a terminal', () => {
  it('draws a spinner there and keeps stdout to the one JSON value', async () => {
    const stdout = join(dir.path, 'import.json');
    const { terminal, file } = await openImport('drawn', { words: ['--json'], stdout });
    await file.close();
    const { code, raw } = await terminal.end();
    expect(code).toBe(0);
    expect(raw).toMatch(SPINNER);
    expect(raw.lastIndexOf(SHOW_CURSOR)).toBeGreaterThan(raw.lastIndexOf('\u001b[?25l'));
    expect(await readJson(stdout)).toMatchObject({ inserted: 1000, rejectedCount: 0 });
  });

  it.each([
    ['data export', ['data', 'export', 'notes', '--json'], /Exporting notes/],
    ['backup', ['backup', '--out', 'all.backup', '--json'], /Backing up/],
    ['restore --verify', ['restore', 'all.backup', '--verify', '--json'], /Checking all\.backup/],
  ])('%s: the spinner and the result do not mix', async (name, words, text) => {
    const stdout = join(dir.path, `${name}.json`);
    const there = words.map((word) => (word === 'all.backup' ? join(dir.path, word) : word));
    const { code, raw, screen } = await openTerminal(there, env, { stdout }).end();
    expect(code).toBe(0);
    expect(screen.replaceAll(dir.path + '/', '')).toMatch(text);
    expect(raw).toMatch(SPINNER);
    expect(await readJson(stdout)).toBeTypeOf('object');
  });

  it('draws the spinner without colour where NO_COLOR is set, and none with --quiet', async () => {
    const { terminal, file } = await openImport('plain', { env: { NO_COLOR: '1' } });
    await file.close();
    const plain = await terminal.end();
    expect(plain.raw).toMatch(SPINNER);
    expect(plain.raw).not.toMatch(COLOUR);
    const quiet = await openTerminal(
      ['data', 'export', 'notes', '--out', join(dir.path, 'q.json'), '--quiet'],
      env,
    ).end();
    expect(quiet.code).toBe(0);
    expect(quiet.screen).toMatch(/^\d+\r\n$/);
    expect(quiet.raw).not.toContain('\u001b');
  });

  it('gives the cursor back and is 130 when Ctrl-C comes while the spinner turns', async () => {
    const { terminal, file } = await openImport('stopped');
    terminal.type(CTRL_C);
    await terminal.shows('Interrupted.');
    // A process does not end while the system waits for a pipe to be filled.
    await file.close();
    const { code, raw } = await terminal.end();
    expect(code).toBe(130);
    expect(raw).toMatch(COLOUR);
    expect(raw.lastIndexOf(SHOW_CURSOR)).toBeGreaterThan(raw.lastIndexOf('\u001b[?25l'));
  });
});

describe.runIf(process.platform === 'linux')('closed and full streams', () => {
  /** Runs the binary under a shell that redirects its streams. */
  async function redirected(
    words: string,
    redirection: string,
  ): Promise<{ code: number; stdout: string; stderr: string }> {
    const child = spawn('sh', ['-c', `exec "$0" "$1" ${words} ${redirection}`, process.execPath, BINARY], {
      env: { PATH: process.env.PATH!, ...env },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    let [stdout, stderr] = ['', ''];
    child.stdout.setEncoding('utf8').on('data', (text: string) => (stdout += text));
    child.stderr.setEncoding('utf8').on('data', (text: string) => (stderr += text));
    const [code] = (await once(child, 'close')) as [number];
    return { code, stdout, stderr };
  }

  it.each([
    ['project list --json', '<&-', 0],
    ['project list --json', '>&-', 0],
    ['project list --json', '2>&-', 0],
    ['project create', '<&-', 2],
    ['project craete', '2>&-', 2],
    ['user create --email a@b.co --password-stdin', '<&-', 2],
  ])('%s %s ends with exit %i and no stack trace', async (words, redirection, code) => {
    const outcome = await redirected(words, redirection);
    expect(outcome.code).toBe(code);
    expect(outcome.stderr).not.toMatch(/^\s+at /m);
    if (code === 0) expect(outcome.stderr).toBe('');
  });

  it.each([['project list --json'], ['data export notes'], ['--help'], ['project list --help']])(
    '%s into a full disk is a failure that says so',
    async (words) => {
      const { code, stderr } = await redirected(words, '>/dev/full');
      expect(code).toBe(1);
      expect(stderr.split('\n')[0]).toBe(
        'bsvc: Standard output cannot be written: the disk is full. What was done stays done.',
      );
    },
  );

  it('ends quietly when the reader of a short answer is gone before it comes', async () => {
    const child = spawn(process.execPath, [BINARY, 'project', 'list'], {
      env: { PATH: process.env.PATH!, ...env },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    child.stdout.destroy();
    let stderr = '';
    child.stderr.setEncoding('utf8').on('data', (text: string) => (stderr += text));
    const [code] = (await once(child, 'close')) as [number];
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  });
});
