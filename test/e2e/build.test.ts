import { execFileSync, spawnSync } from 'node:child_process';
import {
  closeSync,
  copyFileSync,
  cpSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { build } from 'esbuild';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { listHelpTexts } from '../world/cli.js';
import { openTempDir, type TempDir } from '../helpers/temp-dir.js';

const ROOT = join(import.meta.dirname, '../..');
const compiled = join(ROOT, 'dist/commands.cache');
const PACKAGE = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as {
  version: string;
  scripts: Record<string, string>;
};

describe('Dockerfile', () => {
  const [building] = readFileSync(join(ROOT, 'Dockerfile'), 'utf8')
    .split(/^FROM .*$/m)
    .slice(1);
  const copied = [...building!.matchAll(/^COPY (.+) \S+$/gm)].flatMap(([, paths]) => paths!.split(' '));

  it('copies what build and package are made of', async () => {
    const commands = `${PACKAGE.scripts.build!} && ${PACKAGE.scripts.package!}`.split(' && ');
    const { metafile } = await build({
      entryPoints: commands.filter((command) => command.startsWith('node ')).map((command) => command.slice(5)),
      absWorkingDir: ROOT,
      bundle: true,
      platform: 'node',
      format: 'esm',
      packages: 'external',
      outdir: 'dist',
      write: false,
      metafile: true,
    });
    const beside = ['package.json', 'package-lock.json', 'tsconfig.json', 'cli/main.ts', 'templates', 'LICENSE'];
    const read = [...Object.keys(metafile.inputs), ...beside];
    expect(read.filter((path) => !copied.some((each) => `${path}/`.startsWith(`${each}/`)))).toEqual([]);
  });

  it('copies nothing that .dockerignore leaves out', () => {
    const kept = readFileSync(join(ROOT, '.dockerignore'), 'utf8').matchAll(/^!(.+)$/gm);
    const names = [...kept].map(([, path]) => path!);
    expect(copied.filter((path) => !names.includes(path.split('/')[0]!))).toEqual([]);
  });
});

describe('what the build has compiled', () => {
  it.each(['serve', 'project'])('is what a start of "%s" uses', (word) => {
    const told = execFileSync(
      process.execPath,
      [
        '--input-type=module',
        '-e',
        `import { compileBundle } from './bin/bundle.js'; console.log(compileBundle(['${word}']).script.cachedDataRejected)`,
      ],
      { cwd: ROOT, encoding: 'utf8' },
    );
    expect(told.trim()).toBe('false');
  });

  it('holds the server only where a command needs it', () => {
    const parts = (file: string): string[] => {
      const text = readFileSync(join(ROOT, 'dist', file), 'utf8');
      return ['node_modules/koa/', 'src/api.ts', 'cli/commands/'].filter((path) => text.includes(`"${path}`));
    };
    expect(parts('main.js')).toEqual(['node_modules/koa/', 'src/api.ts', 'cli/commands/']);
    expect(parts('commands.js')).toEqual(['cli/commands/']);
  });
});

describe('the help of a command', () => {
  const bsvc = (...words: string[]): string =>
    execFileSync(process.execPath, [join(ROOT, 'bin/bsvc.js'), ...words], { encoding: 'utf8' });

  it('is kept as the command line prints it', async () => {
    const texts = await listHelpTexts();
    expect([...texts.keys()].sort()).toEqual(
      readdirSync(join(ROOT, 'dist/help'))
        .map((file) => file.replace('.txt', ''))
        .sort(),
    );
    for (const [name, text] of texts) expect(readFileSync(join(ROOT, 'dist/help', `${name}.txt`), 'utf8')).toBe(text);
  });

  it('is the same wherever it comes from', () => {
    // A word before it that is no command's name leaves the kept one aside.
    for (const words of [[], ['project'], ['project', 'create'], ['serve']]) {
      const kept = bsvc(...words, '--help');
      expect([bsvc(...words, '-h'), bsvc('--no-color', ...words, '--help')]).toEqual([kept, kept]);
    }
    expect(bsvc('--help')).toContain('Usage: bsvc');
  });

  it('ends well where nobody reads it to the end', () => {
    const command = `set -o pipefail; ${process.execPath} ${join(ROOT, 'bin/bsvc.js')} --help | head -1`;
    expect(execFileSync('bash', ['-c', command], { encoding: 'utf8' })).toMatch(/^Usage: bsvc/);
  });

  it('is no success where it cannot be written', () => {
    const full = openSync('/dev/full', 'w');
    const { status } = spawnSync(process.execPath, [join(ROOT, 'bin/bsvc.js'), '--help'], {
      stdio: ['ignore', full, 'pipe'],
    });
    closeSync(full);
    expect(status).toBe(1);
  });
});

describe('a start', () => {
  let copy: TempDir;
  let cache: string;
  beforeAll(async () => {
    copy = await openTempDir();
    cache = join(copy.path, 'dist/commands.cache');
    mkdirSync(join(copy.path, 'dist'));
    for (const file of ['package.json', 'dist/commands.js']) copyFileSync(join(ROOT, file), join(copy.path, file));
    cpSync(join(ROOT, 'bin'), join(copy.path, 'bin'), { recursive: true });
    symlinkSync(join(ROOT, 'node_modules'), join(copy.path, 'node_modules'));
  });
  afterAll(() => copy.remove());
  const version = (): string =>
    execFileSync(process.execPath, [join(copy.path, 'bin/bsvc.js'), '--version'], { encoding: 'utf8' }).trim();

  it.each<[string, () => void]>([
    ['is missing', () => {}],
    ['is of another version of Node', () => writeFileSync(cache, readFileSync(compiled).fill(7, 4, 8))],
    ['is empty', () => writeFileSync(cache, '')],
  ])('needs no compiled code: it %s', (_state, spoil) => {
    spoil();
    expect(version()).toBe(PACKAGE.version);
  });
});
