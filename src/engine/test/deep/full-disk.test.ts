import { spawn } from 'node:child_process';
import { text } from 'node:stream/consumers';
import { join } from 'node:path';
import { afterAll, afterEach, beforeEach, describe, expect, it } from 'vitest';
import { openSmallDisk, type SmallDisk } from '../helpers/small-disk.js';

/** BSVC_TEST_FULL_DISKS=50 for the long form. */
const DISKS = Number(process.env['BSVC_TEST_FULL_DISKS'] ?? 2);
const probe = await openSmallDisk(1);
afterAll(() => probe?.remove());

interface Told {
  done: number;
  refused: number;
  removed: number;
  other: string[];
  stored: number;
  found: number;
  lost: unknown[];
  problems: string[];
}

// Needs the right to mount a file system in memory.
describe.skipIf(!probe)('a disk that fills up and is freed again', () => {
  let disk: SmallDisk;
  beforeEach(async () => {
    disk = (await openSmallDisk(12))!;
  });
  afterEach(() => disk.remove());

  it.each(Array.from({ length: DISKS }, (_, n) => n + 1))(
    'refuses writes before the file is touched, and loses none that it took (seed %i)',
    async (seed) => {
      const script = join(import.meta.dirname, '../full-disk-writer.ts');
      const child = spawn(process.execPath, ['--import', 'tsx', script, disk.path, String(seed)], {
        stdio: ['ignore', 'pipe', 'pipe'],
      });
      const ended = new Promise((resolve) => child.on('close', (code, signal) => resolve(code ?? signal)));
      const [out, err] = await Promise.all([text(child.stdout), text(child.stderr)]);
      // LMDB prints each write that it could not do, into memory that is too small for it.
      expect(err).toBe('');
      expect(await ended).toBe(0);
      const told = JSON.parse(out) as Told;
      expect(told).toMatchObject({ other: [], lost: [], problems: [], found: told.stored });
      for (const times of [told.done, told.refused, told.removed]) expect(times).toBeGreaterThan(50);
    },
  );
});
