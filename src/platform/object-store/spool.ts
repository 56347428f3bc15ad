import { createHash, randomUUID } from 'node:crypto';
import { mkdir, open, readdir, rm, stat } from 'node:fs/promises';
import { hostname } from 'node:os';
import { join } from 'node:path';
import type { Readable } from 'node:stream';
import { findFullDisk } from '../database/full-disk.js';

export interface Spooled {
  path: string;
  size: number;
}

/** A directory of files that are still arriving, under names that nobody else knows. */
export interface Spool {
  /**
   * Writes `body` to a file of its own and syncs it to disk; when `body` fails the file is removed. 507 when the disk
   * is full.
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
      const path = join(dir, `${MACHINE}-${process.pid}-${randomUUID()}`);
      arriving.add(path);
      try {
        return { path, size: await writeFile(dir, path, body) };
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
        // A file that arrived since was renamed and has no age here any more.
        const found = await stat(path).catch(() => null);
        if (!found) continue;
        const isLeft = arriving.has(path) ? false : isOrphan(name) || nowMs - found.mtimeMs > olderThanMs;
        if (!isLeft) continue;
        await discard({ path });
        removed++;
      }
      return removed;
    },
  };
}

/** The directory may be shared with other machines, or with containers, of whose processes nothing is known here. */
const MACHINE = createHash('sha256').update(hostname()).digest('hex').slice(0, 8);

/** True if a process that is gone, or an earlier one with this one's id, began the file on this machine. */
function isOrphan(name: string): boolean {
  const [, machine, pid] = /^([0-9a-f]{8})-(\d+)-/.exec(name) ?? [];
  if (machine !== MACHINE) return false;
  if (Number(pid) === process.pid) return true;
  try {
    process.kill(Number(pid), 0);
    return false;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'ESRCH';
  }
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
