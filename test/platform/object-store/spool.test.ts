import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { PassThrough, Readable } from 'node:stream';
import { afterEach, beforeEach, describe, expect, it, onTestFinished } from 'vitest';
import { OWNER } from '../../../src/platform/processes/work-folder.js';
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

/** How a running process names itself. */
async function ownerNamedBy(pid: number): Promise<string> {
  const line = await readFile(`/proc/${pid}/stat`, 'utf8');
  const [machine] = OWNER.split('-');
  return `${machine}-${pid}-${line.slice(line.lastIndexOf(')') + 2).split(' ')[19]}`;
}

describe('files that were arriving when their process was killed', () => {
  it('are removed at once, also when other processes have their ids now, and those of others are left alone for long', async () => {
    const spool = openSpool(dir.path);
    const { path } = await spool.receive(Readable.from([Buffer.from('whole')]));
    const whole = path.slice(dir.path.length + 1);
    const [machine, pid, start] = whole.split(/[-_]/);
    const neighbour = spawn(process.execPath, ['-e', 'setInterval(() => undefined, 1000)']);
    onTestFinished(() => void neighbour.kill('SIGKILL'));
    await once(neighbour, 'spawn');
    const leave = (name: string): Promise<void> => writeFile(join(dir.path, name), 'half');
    const ofOthers = [
      `${await ownerNamedBy(neighbour.pid!)}_running`,
      `00000000-${await deadProcess()}-7_elsewhere`,
      'of-an-older-version',
    ];
    await leave(`${machine}-${await deadProcess()}-7_dead`);
    // As process 1 of a container, before and after its restart.
    await leave(`${machine}-${pid}-${Number(start) - 1}_before`);
    await leave(`${machine}-${neighbour.pid}-7_before`);
    for (const name of ofOthers) await leave(name);
    expect(await spool.sweep(HOUR_MS, Date.now())).toBe(3);
    expect((await readdir(dir.path)).sort()).toEqual([whole, ...ofOthers].sort());
    expect(await spool.sweep(HOUR_MS, Date.now() + 2 * HOUR_MS)).toBe(2);
    expect((await readdir(dir.path)).sort()).toEqual([whole, ofOthers[0]].sort());
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
