import { execFileSync } from 'node:child_process';
import { lstatSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { createRequire, isBuiltin } from 'node:module';
import { join } from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import { openTempDir } from '../helpers/temp-dir.js';
import { use } from '../helpers/use.js';

const ROOT = join(import.meta.dirname, '../..');
const NATIVE = `@lmdb/lmdb-${process.platform}-${process.arch}`;

const dir = use(await openTempDir());
execFileSync(process.execPath, [join(ROOT, 'src/packaging/package.mjs'), dir.path], {
  stdio: ['ignore', 'ignore', 2],
});
const tarball = join(
  dir.path,
  readdirSync(dir.path).find((name) => name.endsWith('.tgz'))!,
);

describe('the packed file, installed into an empty folder', () => {
  let home: string;
  const npm = (...words: string[]): string => execFileSync('npm', words, { cwd: home, encoding: 'utf8' });

  // Without the registry: the native part, which npm would load from there, comes from the packages of this checkout.
  beforeAll(() => {
    home = join(dir.path, 'home');
    mkdirSync(home);
    writeFileSync(join(home, 'package.json'), '{"private":true}');
    const native = npm('pack', '--silent', join(ROOT, 'node_modules', NATIVE)).trim();
    const offline = ['--offline', '--omit=optional', '--ignore-scripts', '--cache', join(dir.path, 'cache')];
    npm('install', ...offline, '--no-audit', '--no-fund', tarball, `./${native}`);
  });

  it('is two packages, compiles nothing, and needs at most 25 MB', () => {
    const lock = JSON.parse(readFileSync(join(home, 'package-lock.json'), 'utf8')) as {
      packages: Record<string, { inBundle?: true; optional?: true; peer?: true; hasInstallScript?: true }>;
    };
    const loaded = Object.entries(lock.packages).filter(([name, about]) => name !== '' && !about.inBundle);
    expect(loaded.filter(([, { optional, peer }]) => !optional && !peer).map(([name]) => name)).toEqual([
      `node_modules/${NATIVE}`,
      'node_modules/bsvc',
    ]);
    expect(loaded.filter(([, about]) => about.hasInstallScript)).toEqual([]);
    const folder = join(home, 'node_modules');
    const sizes = readdirSync(folder, { recursive: true, encoding: 'utf8' }).map((path) =>
      lstatSync(join(folder, path)),
    );
    const bytes = sizes.filter((file) => file.isFile()).reduce((sum, { size }) => sum + size, 0);
    expect(bytes).toBeLessThan(25_000_000);
    expect(lstatSync(tarball).size).toBeLessThan(5_000_000);
  });

  it('names the license of what is in it', () => {
    const text = readFileSync(join(home, 'node_modules/bsvc/LICENSES.txt'), 'utf8');
    for (const name of ['koa 3.3.0', 'mongodb 7.8.0', '@aws-sdk/client-s3', 'preact ']) expect(text).toContain(name);
  });

  it('has every part that its script loads from a folder of its own', () => {
    const script = readFileSync(join(ROOT, 'dist/main.js'), 'latin1');
    const asked = new Set([...script.matchAll(/\brequire\("([^"]+)"\)/g)].map(([, name]) => name!));
    const names = [...asked].filter((name) => !isBuiltin(name) && name !== 'libsql');
    expect(names).toContain('@simplewebauthn/server/helpers');
    const load = createRequire(join(home, 'node_modules/bsvc/dist/main.js'));
    expect(names.filter((name) => Object.keys(load(name) as object).length === 0)).toEqual([]);
  });

  it('does all that a first user does', () => {
    const bsvc = join(home, 'node_modules/.bin/bsvc');
    const told = execFileSync(process.execPath, [join(ROOT, '.ci/smoke.mjs'), bsvc], { encoding: 'utf8' });
    expect(told).toContain('all that a first user does works');
  });
});
