import { rmSync } from 'node:fs';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { openEngine } from '../../index.js';
import { temporaryDir } from '../transports.js';

/** What the file system says of itself; null: what it is. */
const told = vi.hoisted(() => ({ type: null as number | null, free: Infinity }));
vi.mock(import('node:fs'), async (original) => {
  const fs = await original();
  const statfsSync = ((...given: Parameters<typeof fs.statfsSync>) => {
    const real = fs.statfsSync(...given);
    if (told.type === null) return real;
    return Object.assign(real, { type: told.type, bsize: 1, bavail: Math.min(told.free, 2 ** 40) });
  }) as typeof fs.statfsSync;
  return { ...fs, statfsSync };
});

const MEGABYTE = 2 ** 20;

describe.each([
  ['btrfs', 0x9123683e],
  ['ZFS', 0x2fc12fc1],
  ['bcachefs', 0xca451a4e],
])('a store on %s', (_name, type) => {
  const dataDir = temporaryDir();
  afterEach(() => {
    Object.assign(told, { type: null, free: Infinity });
    rmSync(dataDir, { recursive: true, force: true });
  });

  it('is not opened, and not written to, when the file system is nearly full; writes go on when it is not', async () => {
    Object.assign(told, { type, free: MEGABYTE });
    const full = { code: 'NO_SPACE', message: expect.stringMatching(/needs 16 MB free\. Free space/) as string };
    expect(() => openEngine({ dataDir })).toThrow(expect.objectContaining(full));
    told.free = 100 * MEGABYTE;
    const engine = openEngine({ dataDir });
    const items = engine.db('d').collection<{ _id: number }>('items');
    await items.insertOne({ _id: 1 });
    told.free = MEGABYTE;
    await expect(items.insertOne({ _id: 2 })).rejects.toMatchObject(full);
    expect(await items.countDocuments({})).toBe(1);
    told.free = 100 * MEGABYTE;
    await items.insertOne({ _id: 2 });
    expect(await items.countDocuments({})).toBe(2);
    await engine.close();
  });
});
