import { execFileSync, spawnSync, type SpawnSyncReturns } from 'node:child_process';
import { chmodSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { describe, expect, it } from 'vitest';
import { openTempDir } from '../helpers/temp-dir.js';
import { use } from '../helpers/use.js';

const ROOT = join(import.meta.dirname, '../..');

const dir = use(await openTempDir());
const words = [join(ROOT, 'src/packaging/executable.mjs'), dir.path];
const executable = execFileSync(process.execPath, words, { encoding: 'utf8' }).trim();

/** Without any of this machine's programs but the system's. */
const run = (words: string[], env: Record<string, string>): SpawnSyncReturns<string> =>
  spawnSync(executable, words, { cwd: dir.path, env: { PATH: '/nowhere', ...env }, encoding: 'utf8' });
const newFolder = (name: string): string => {
  const path = join(dir.path, name);
  mkdirSync(path);
  return path;
};
const unpackedIn = (cache: string): string[] => readdirSync(join(cache, 'bsvc'));
const VERSION = /^0\.\d+\.\d+\n$/;

describe('the executable, in an empty folder', () => {
  it('is one file of at most 50 MB when it is compressed', () => {
    const bytes = gzipSync(readFileSync(executable)).length;
    console.log(`${(statSync(executable).size / 1e6).toFixed(1)} MB, ${(bytes / 1e6).toFixed(1)} MB compressed`);
    expect(bytes).toBeLessThan(50_000_000);
  });

  it('unpacks its files at its first start, and finds them from then on', () => {
    const cache = newFolder('cache');
    const starts = [1, 2].map(() => {
      const begun = performance.now();
      const { stdout, stderr } = run(['--version'], { XDG_CACHE_HOME: cache });
      expect([stdout, stderr]).toEqual([expect.stringMatching(VERSION), '']);
      return Math.round(performance.now() - begun);
    });
    console.log(`the first start took ${starts[0]} ms, the second ${starts[1]} ms`);
    const [folder, ...others] = unpackedIn(cache);
    expect(others).toEqual([]);
    expect(statSync(join(cache, 'bsvc', folder!)).mode & 0o077).toBe(0);
  });

  it('does all that a first user does: processes of its own, own code that sees its folder alone, backups', () => {
    const env = { ...process.env, XDG_CACHE_HOME: newFolder('used') };
    const told = execFileSync(process.execPath, [join(ROOT, '.ci/smoke.mjs'), executable], { env, encoding: 'utf8' });
    expect(told).toContain('all that a first user does works');
  });

  it('prints what README’s tour shows', () => {
    const told = execFileSync(process.execPath, [join(ROOT, '.ci/tour.mjs'), executable], { encoding: 'utf8' });
    expect(told).toContain('README’s tour prints what it shows');
  });

  it('is what a systemd unit starts', () => {
    const { stdout } = run(['service', 'install', '--print', '--out', dir.path], { HOME: dir.path });
    expect(stdout).toContain(`\nExecStart=${executable} serve --data-dir `);
  });
});

describe('the cache folder of the executable', () => {
  it('is unpacked once by several that start at the same time, and rid of what a killed one left', async () => {
    const cache = newFolder('together');
    mkdirSync(join(cache, 'bsvc'), { mode: 0o700 });
    // No process has this number: it is larger than the system gives.
    mkdirSync(join(cache, 'bsvc', '0.0.0-0.part-99999999'));
    const several = `for n in 1 2 3 4; do "$0" --version & done; wait`;
    const out = execFileSync('bash', ['-c', several, executable], {
      env: { PATH: process.env.PATH, XDG_CACHE_HOME: cache },
      encoding: 'utf8',
    });
    expect(out.trim().split('\n')).toHaveLength(4);
    expect(unpackedIn(cache)).toHaveLength(1);
  });

  it('is not taken from where others could write to it', () => {
    const cache = newFolder('shared');
    run(['--version'], { XDG_CACHE_HOME: cache });
    const [name] = unpackedIn(cache);
    writeFileSync(join(cache, 'bsvc', name!, 'bin', 'bsvc.js'), 'console.log("planted")');
    for (const path of [join(cache, 'bsvc', name!), join(cache, 'bsvc'), cache]) {
      chmodSync(path, 0o777);
      const own = newFolder(`tmp of ${path.length}`);
      const { stdout } = run(['--version'], { XDG_CACHE_HOME: cache, TMPDIR: own });
      expect(stdout).toMatch(VERSION);
      chmodSync(path, 0o700);
    }
  });

  it('says where it has to be when it can be nowhere', () => {
    const file = join(dir.path, 'a file');
    writeFileSync(file, '');
    const { status, stderr } = run(['--version'], { XDG_CACHE_HOME: file, TMPDIR: file });
    expect([status, stderr]).toEqual([1, expect.stringMatching(/Set XDG_CACHE_HOME to a folder .*\n {2}.*a file/)]);
  });
});
