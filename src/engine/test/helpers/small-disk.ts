import { spawnSync } from 'node:child_process';
import { openTempDir } from './temp-dir.js';

/** A file system of its own with room for `megabytes`, in memory. */
export interface SmallDisk {
  path: string;
  /** Makes it larger or smaller. */
  resize(megabytes: number): void;
  remove(): Promise<void>;
}

const mount = (...words: string[]): boolean => spawnSync('mount', words).status === 0;

/** Null where this user may not mount anything. */
export async function openSmallDisk(megabytes: number): Promise<SmallDisk | null> {
  if (process.platform !== 'linux') return null;
  const dir = await openTempDir();
  if (!mount('-t', 'tmpfs', '-o', `size=${megabytes}m,mode=700`, 'bsvc-test', dir.path)) {
    await dir.remove();
    return null;
  }
  return {
    path: dir.path,
    resize(to) {
      if (!mount('-o', `remount,size=${to}m`, dir.path)) throw new Error('the file system could not be resized');
    },
    async remove() {
      spawnSync('umount', ['-l', dir.path]);
      await dir.remove();
    },
  };
}
