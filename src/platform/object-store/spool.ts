import { randomUUID } from 'node:crypto';
import { open, readdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import type { Readable } from 'node:stream';
import { findFullDisk } from '../database/outages.js';
import { makeDirectory } from '../durable-files.js';
import { BlockSums, type StoredBytes } from './block-sums.js';
import { OWNER, OWNER_PATTERN, isLeft } from '../processes/work-folder.js';

export interface Spooled extends StoredBytes {
  path: string;
}

/** A directory of files that are still arriving, under random names. */
export interface Spool {
  /**
   * Writes `body` to a file of its own; when `body` fails the file is removed. 507 when the disk is full.
   */
  receive(body: Readable): Promise<Spooled>;
  discard(spooled: Spooled): Promise<void>;
  /** Called when the file has been moved to its place. */
  moved(spooled: Spooled): void;
  /**
   * Removes the files that killed processes left, and returns their number: those of processes of this machine that are
   * gone, at once, and others that nothing was written to for `olderThanMs`.
   */
  sweep(olderThanMs: number, nowMs: number): Promise<number>;
}

/** Files of this process that are arriving, or wait to be moved to their place. */
const arriving = new Set<string>();

export function openSpool(dir: string): Spool {
  const discard = async ({ path }: { path: string }): Promise<void> => {
    await rm(path, { force: true });
    arriving.delete(path);
  };
  return {
    async receive(body) {
      const path = join(dir, `${OWNER}_${randomUUID()}`);
      arriving.add(path);
      try {
        return { path, ...(await writeFile(dir, path, body)) };
      } catch (error) {
        body.destroy();
        await discard({ path });
        throw findFullDisk(error) ?? error;
      }
    },
    discard,
    moved: ({ path }) => void arriving.delete(path),
    async sweep(olderThanMs, nowMs) {
      let removed = 0;
      for (const name of await listNames(dir)) {
        const path = join(dir, name);
        const owner = OWNED.exec(name)?.[1] ?? '';
        if (arriving.has(path) || !(await isLeft(path, owner, olderThanMs, nowMs))) continue;
        await discard({ path });
        removed++;
      }
      return removed;
    },
  };
}

const OWNED = new RegExp(`^(${OWNER_PATTERN})_`);

async function writeFile(dir: string, path: string, body: Readable): Promise<StoredBytes> {
  await makeDirectory(dir);
  const file = await open(path, 'wx', 0o600);
  try {
    const sums = new BlockSums();
    let size = 0;
    for await (const chunk of body) {
      const bytes = Buffer.from(chunk as Buffer | string);
      sums.add(bytes);
      size += bytes.length;
      await file.appendFile(bytes);
    }
    return { size, sums: sums.finish() };
  } finally {
    await file.close();
  }
}

async function listNames(dir: string): Promise<string[]> {
  try {
    return await readdir(dir);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return [];
    throw error;
  }
}
