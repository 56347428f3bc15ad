import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { PassThrough, Readable } from 'node:stream';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { openSpool } from '../../../src/platform/object-store/spool.js';
import { eventually } from '../../helpers/eventually.js';
import { openTempDir, type TempDir } from '../../helpers/temp-dir.js';

const HOUR_MS = 3_600_000;

let dir: TempDir;
beforeEach(async () => {
  dir = await openTempDir();
});
afterEach(() => dir.remove());

/** The id of a process that has ended. */
async function deadProcess(): Promise<number> {
  const child = spawn(process.execPath, ['-e', '']);
  await once(child, 'exit');
  return child.pid!;
}

describe('files that were arriving when their process was killed', () => {
  it('are removed at once, also when another process has its id now, and those of others are left alone for long', async () => {
    const spool = openSpool(dir.path);
    const { path } = await spool.receive(Readable.from([Buffer.from('whole')]));
    const whole = path.slice(dir.path.length + 1);
    const [machine] = whole.split('-');
    const leave = (name: string): Promise<void> => writeFile(join(dir.path, name), 'half');
    const ofOthers = [
      `${machine}-${process.ppid}-running`,
      `00000000-${await deadProcess()}-elsewhere`,
      'of-an-older-version',
    ];
    await leave(`${machine}-${await deadProcess()}-dead`);
    await leave(`${machine}-${process.pid}-before`);
    for (const name of ofOthers) await leave(name);
    expect(await spool.sweep(HOUR_MS, Date.now())).toBe(2);
    expect((await readdir(dir.path)).sort()).toEqual([whole, ...ofOthers].sort());
    expect(await spool.sweep(HOUR_MS, Date.now() + 2 * HOUR_MS)).toBe(3);
    expect(await readdir(dir.path)).toEqual([whole]);
  });

  it('are not taken for those that are still arriving', async () => {
    const spool = openSpool(dir.path);
    const body = new PassThrough();
    const receiving = spool.receive(body);
    body.write('half');
    await eventually('it has begun', async () => (await readdir(dir.path)).length === 1);
    expect(await spool.sweep(0, Date.now() + HOUR_MS)).toBe(0);
    body.end();
    expect((await receiving).size).toBe(4);
  });
});
