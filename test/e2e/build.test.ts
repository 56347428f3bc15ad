import { execFileSync, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
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
import { builtinModules } from 'node:module';
import { join } from 'node:path';
import { build } from 'esbuild';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { listHelpTexts } from '../world/cli.js';
import { openTempDir, type TempDir } from '../helpers/temp-dir.js';

const ROOT = join(import.meta.dirname, '../..');
const compiled = join(ROOT, 'dist/commands.cache');
const PACKAGE = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as {
  version: string;
  dependencies: Record<string, string>;
  scripts: Record<string, string>;
  files: string[];
};

describe('Dockerfile', () => {
  const lines = readFileSync(join(ROOT, 'Dockerfile'), 'utf8').split('\n');
  const [building, final] = lines
    .join('\n')
    .split(/^FROM .*$/m)
    .slice(1)
    .map((stage) => [...stage.matchAll(/^COPY (?!--from)(.+) \S+$/gm)].flatMap(([, paths]) => paths!.split(' ')));

  it('copies what the build is made of', async () => {
    const { metafile } = await build({
      entryPoints: PACKAGE.scripts.build!.split(' && ').map((command) => command.replace('node ', '')),
      absWorkingDir: ROOT,
      bundle: true,
      platform: 'node',
      format: 'esm',
      packages: 'external',
      outdir: 'dist',
      write: false,
      metafile: true,
    });
    const read = [...Object.keys(metafile.inputs), 'package.json', 'package-lock.json', 'tsconfig.json', 'cli/main.ts'];
    expect(read.filter((path) => !building!.some((copied) => `${path}/`.startsWith(`${copied}/`)))).toEqual([]);
  });

  it('puts into the image what the package has, and what tells of it', () => {
    const wanted = [...PACKAGE.files.filter((path) => path !== 'dist'), 'package.json', 'LICENSE', 'README.md'];
    expect(final!.sort()).toEqual(wanted.sort());
  });

  it('copies nothing that .dockerignore leaves out', () => {
    const kept = readFileSync(join(ROOT, '.dockerignore'), 'utf8').matchAll(/^!(.+)$/gm);
    const names = [...kept].map(([, path]) => path!);
    expect([...building!, ...final!].filter((path) => !names.includes(path))).toEqual([]);
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
  }, 120_000);

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

describe('the package that npm packs', () => {
  let dir: TempDir;
  beforeAll(async () => {
    dir = await openTempDir();
    execFileSync('npm', ['pack', '--ignore-scripts', '--pack-destination', dir.path], { cwd: ROOT, stdio: 'ignore' });
    const [tarball] = readdirSync(dir.path);
    execFileSync('tar', ['-xzf', tarball!], { cwd: dir.path });
    symlinkSync(join(ROOT, 'node_modules'), join(dir.path, 'package/node_modules'));
  });
  afterAll(() => dir.remove());

  it('asks for no package that its users do not get', () => {
    const built = ['main.js', 'commands.js', 'reader-thread.js', 'copy-process.js'].map((file) =>
      readFileSync(join(dir.path, 'package/dist', file), 'utf8'),
    );
    const asked = built.flatMap((text) => [...text.matchAll(/\brequire\("([^"]+)"\)/g)].map(([, name]) => name!));
    const packages = asked
      // A command that is in the other script.
      .filter((name) => !name.startsWith('./'))
      .map((name) => /^(@[^/]+\/)?[^/]+/.exec(name)![0]);
    const others = packages.filter((name) => !name.startsWith('node:') && !builtinModules.includes(name));
    expect(others.filter((name) => !(name in PACKAGE.dependencies))).toEqual([]);
  });

  it('starts a server that has its pages, away from the sources', async () => {
    const child = spawn(process.execPath, [join(dir.path, 'package/bin/bsvc.js'), 'serve', '--port', '0', '--json'], {
      cwd: dir.path,
      env: { PATH: process.env.PATH, BSVC_DATA_DIR: join(dir.path, 'data') },
    });
    child.stderr.resume();
    const [line] = (await once(child.stdout, 'data')) as [Buffer];
    const { url } = JSON.parse(line.toString().split('\n')[0]!) as { url: string };
    const pages = ['/', '/api/docs', '/api/docs/guides/getting-started', '/api/openapi.json'];
    const replies = await Promise.all(
      pages.map((path) => fetch(url + path, { headers: { accept: 'text/html, */*' } })),
    );
    expect(replies.map(({ status }) => status)).toEqual(pages.map(() => 200));
    child.stdout.resume();
    child.kill('SIGTERM');
    expect(await once(child, 'close')).toEqual([0, null]);
  });
});
