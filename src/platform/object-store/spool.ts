import { randomUUID } from 'node:crypto';
import { mkdir, open, readdir, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import type { Readable } from 'node:stream';
import { findFullDisk } from '../full-disk.js';

export interface Spooled {
  path: string;
  size: number;
}

/** A directory of files that are still arriving; none of them has a name that anybody is told. */
export interface Spool {
  /** Writes `body` to a file of its own and syncs it to disk; when `body` fails the file is removed. 507 when the disk is full. */
  receive(body: Readable): Promise<Spooled>;
  discard(spooled: Spooled): Promise<void>;
  /** Removes files that nothing was written to for `olderThanMs`: left by a process that was killed. Tells how many. */
  sweep(olderThanMs: number, nowMs: number): Promise<number>;
}

export function openSpool(dir: string): Spool {
  const discard = (spooled: { path: string }): Promise<void> => rm(spooled.path, { force: true });
  return {
    async receive(body) {
      const path = join(dir, randomUUID());
      try {
        return { path, size: await writeFile(dir, path, body) };
      } catch (error) {
        body.destroy();
        await discard({ path });
        throw findFullDisk(error) ?? error;
      }
    },
    discard,
    async sweep(olderThanMs, nowMs) {
      let removed = 0;
      for (const name of await listNames(dir)) {
        const path = join(dir, name);
        // A file that arrived meanwhile was renamed and has no age here any more.
        const found = await stat(path).catch(() => null);
        if (!found || nowMs - found.mtimeMs <= olderThanMs) continue;
        await discard({ path });
        removed++;
      }
      return removed;
    },
  };
}

async function writeFile(dir: string, path: string, body: Readable): Promise<number> {
  await mkdir(dir, { recursive: true, mode: 0o700 });
  const file = await open(path, 'wx', 0o600);
  try {
    for await (const chunk of body) await file.appendFile(chunk as Buffer);
    await file.sync();
    return (await file.stat()).size;
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
