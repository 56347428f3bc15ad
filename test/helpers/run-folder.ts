import { readFileSync, statfsSync } from 'node:fs';
import { tmpdir } from 'node:os';

const IN_MEMORY = '/dev/shm';
/** Far more than all files of a run together. */
const ROOM_BYTES = 6 * 2 ** 30;

/**
 * Where the files of a run go: into memory, where there is room and programs may be started from it, as every commit of
 * a store waits for the disk otherwise, which is most of the time of many tests. TMPDIR names another place.
 */
export function placeOfFiles(): string {
  return process.env.TMPDIR === undefined && fitsInMemory() ? IN_MEMORY : tmpdir();
}

function fitsInMemory(): boolean {
  try {
    const { bavail, bsize } = statfsSync(IN_MEMORY);
    const [mount] = readFileSync('/proc/mounts', 'utf8').split('\n').flatMap(optionsOf);
    if (mount === undefined || mount.includes('noexec')) return false;
    return Math.min(bavail * bsize, process.availableMemory()) >= ROOM_BYTES;
  } catch {
    return false;
  }
}

/** The options of the line of a mount that is the one in memory. */
function optionsOf(line: string): string[][] {
  const [, path, , options = ''] = line.split(' ');
  return path === IN_MEMORY ? [options.split(',')] : [];
}
