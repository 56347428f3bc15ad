import { execFileSync } from 'node:child_process';
import { copyFileSync, cpSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Script } from 'node:vm';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { openTempDir, type TempDir } from '../helpers/temp-dir.js';

const ROOT = join(import.meta.dirname, '../..');
const compiled = join(ROOT, 'dist/main.cache');
const VERSION = (JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as { version: string }).version;

describe('what the build has compiled', () => {
  it('is what a start uses', () => {
    const source = readFileSync(join(ROOT, 'dist/main.js'), 'latin1');
    const cachedData = readFileSync(compiled);
    expect(new Script(source, { filename: 'main.js', cachedData }).cachedDataRejected).toBe(false);
  });
});

describe('a start', () => {
  let copy: TempDir;
  let cache: string;
  beforeAll(async () => {
    copy = await openTempDir();
    cache = join(copy.path, 'dist/main.cache');
    mkdirSync(join(copy.path, 'dist'));
    for (const file of ['package.json', 'dist/main.js']) copyFileSync(join(ROOT, file), join(copy.path, file));
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
    expect(version()).toBe(VERSION);
  });
});
