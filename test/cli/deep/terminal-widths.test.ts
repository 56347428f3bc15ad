import { execFileSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { openEngine } from '../../world/engine.js';
import { openCliHome } from '../../helpers/run-cli.js';
import { openTerminal } from '../../helpers/run-terminal.js';
import { openTempDir } from '../../helpers/temp-dir.js';
import { use } from '../../helpers/use.js';

const home = use(openCliHome());
const env = { BSVC_PROJECT: 'shop' };
const backup = join(home.dir, 'shop.backup');

const elsewhere = use(await openTempDir());
const mongodb = use(openEngine({ dataDir: elsewhere.path, durability: 'relaxed' }));
const { uri } = await mongodb.listen('127.0.0.1:0');
await home.bsvc(['project', 'create', 'shop']);
await home.bsvc(['collection', 'add', 'notes', '--flexible'], { env });
await home.bsvc(['data', 'import', 'notes', '-', '--format', 'ndjson'], {
  env,
  stdin: '{"title":"a rather long title"}\n'.repeat(20),
});
await home.bsvc(['backup', '--out', backup], { env });

/** Every command that draws its progress, by its file below cli; and one that draws a table. */
const COMMANDS: Record<string, (columns: number) => { argv: string[]; code?: number; stdin?: string }> = {
  'commands/data/export.ts': () => ({ argv: ['data', 'export', 'notes'] }),
  'doctor/repair.ts': () => ({ argv: ['doctor', '--repair', '--dry-run'] }),
  'commands/data/import.ts': () => ({
    argv: ['data', 'import', 'notes', '-', '--format', 'ndjson'],
    stdin: '{"n":1}\n',
  }),
  'formats/foreign/store-in-batches.ts': (columns) => ({
    argv: ['data', 'import', 'notes', '-', '--from', 'supabase'],
    stdin: `{"id":"${columns}","n":1}\n`,
  }),
  'commands/backup.ts': (columns) => ({ argv: ['backup', '--out', join(home.dir, `${columns}.backup`)] }),
  'commands/restore.ts': (columns) => ({
    argv: ['restore', backup, '--data-dir', join(home.dir, `restored-${columns}`), '--yes'],
  }),
  'commands/move-to.ts': () => ({ argv: ['move-to', uri, '--dry-run'] }),
  'doctor/check-data.ts': () => ({ argv: ['doctor', '--deep'] }),
  table: () => ({ argv: ['collection', 'list'] }),
};

describe.each([0, 1, 20, 500])('a terminal of %i columns', (columns) => {
  it.each(Object.entries(COMMANDS))('carries %s to its end', async (name, call) => {
    const { argv, stdin } = call(columns);
    const { code, stderr } = await home.bsvc(argv, { env, stdin, terminal: true, columns });
    expect({ code, stderr: code === 0 ? '' : stderr }).toEqual({ code: 0, stderr: '' });
    if (name === 'table') return;
    expect(stderr).toContain('\u001b[?25h');
    expect(stderr.length).toBeLessThan(20_000);
  });
});

it('knows every command that draws its progress', () => {
  const found = execFileSync('grep', ['-rl', 'out.progress(', '.'], { cwd: join(import.meta.dirname, '../../../cli') });
  const files = found
    .toString()
    .trim()
    .split('\n')
    .map((path) => path.replace('./', ''));
  expect(files.sort()).toEqual(
    Object.keys(COMMANDS)
      .filter((name) => name !== 'table')
      .sort(),
  );
});

it('counts 0 columns as 80: all of a table is shown', async () => {
  const show = async (columns: number) =>
    (await home.bsvc(['collection', 'list'], { env: { ...env, NO_COLOR: '1' }, terminal: true, columns })).stdout;
  expect(await show(0)).toBe(await show(80));
  expect(await show(0)).not.toContain('Not shown');
});

// The pseudo-terminal is that of util-linux.
describe.runIf(process.platform === 'linux')('a pseudo-terminal without a size', () => {
  const binaryEnv = { BSVC_DATA_DIR: join(home.dir, 'data'), BSVC_DURABILITY: 'relaxed', BSVC_PROJECT: 'shop' };

  it('carries a backup to its end', async () => {
    const path = join(home.dir, 'terminal.backup');
    const { code, raw } = await openTerminal(['backup', '--out', path], binaryEnv, { columns: 0 }).end();
    expect(code).toBe(0);
    expect(existsSync(path)).toBe(true);
    expect(raw.length).toBeLessThan(20_000);
  });

  it('ends a command by Ctrl-C', async () => {
    const fifo = join(home.dir, 'endless.ndjson');
    execFileSync('mkfifo', [fifo]);
    const terminal = openTerminal(['data', 'import', 'notes', fifo], binaryEnv, { columns: 0 });
    await terminal.shows('Importing endless.ndjson');
    terminal.type('\u0003');
    expect((await terminal.end()).code).toBe(130);
  });
});
