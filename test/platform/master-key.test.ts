import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { openMasterKey, prependMasterKey } from '../../src/platform/secrets/master-key.js';
import { openTempDir, type TempDir } from '../helpers/temp-dir.js';

let dir: TempDir;
beforeEach(async () => {
  dir = await openTempDir();
});
afterEach(() => dir.remove());

describe('the master key of a data directory', () => {
  it('is made once, and newer ones in front of it are seen', () => {
    const read = openMasterKey(join(dir.path, 'data'), true);
    const first = read();
    expect(openMasterKey(join(dir.path, 'data'), true)()).toBe(first);
    prependMasterKey(join(dir.path, 'data'));
    expect(read()).toMatch(new RegExp(`^[\\w-]{43},${first}$`));
  });

  it('is never replaced under a process that knows it, though its file is gone', () => {
    const read = openMasterKey(dir.path, true);
    const first = read();
    rmSync(join(dir.path, 'secret.key'));
    expect(read()).toBe(first);
    expect(() => readFileSync(join(dir.path, 'secret.key'))).toThrow('ENOENT');
    rmSync(dir.path, { recursive: true });
    expect(read()).toBe(first);
  });

  it('is not made where something is encrypted already', () => {
    expect(() => openMasterKey(dir.path, false)()).toThrow(/secret\.key is missing.*BSVC_SECRET_KEY/);
    expect(existsSync(join(dir.path, 'secret.key'))).toBe(false);
  });

  it.each(['', 'x', '\n', `${'k'.repeat(43)},x`, `${'k'.repeat(43)},`])('is not the file %j', (text) => {
    writeFileSync(join(dir.path, 'secret.key'), text);
    expect(() => openMasterKey(dir.path, true)()).toThrow(/is not a whole master key/);
  });
});
