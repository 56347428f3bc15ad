import { spawnSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';

/** libfaketime as a process preloads it; null where the Debian package faketime is missing. */
const LIBRARY =
  spawnSync('faketime', ['-f', '+0', 'printenv', 'LD_PRELOAD'], { encoding: 'utf8' }).stdout?.trim() || null;
if (!LIBRARY && process.env.CI) throw new Error('CI must have libfaketime: apt-get install faketime');
if (!LIBRARY) console.warn('tests of a moved clock skipped: no libfaketime on this machine (apt-get install faketime)');
export const canMoveClocks = LIBRARY !== null;

/**
 * The wall clock of processes that are started with `env`; the time since they began, by which timers go, stays true.
 */
export interface MovedClock {
  env: Record<string, string>;
  /** Sets it so far from the true time; they see it within a second. */
  setAhead(seconds: number): void;
}

/** Needs `canMoveClocks`. `dir` gets the file by which the clock is moved. */
export function openMovedClock(dir: string): MovedClock {
  const file = join(dir, 'clock');
  const setAhead = (seconds: number): void => writeFileSync(file, `${seconds < 0 ? '' : '+'}${seconds}`);
  setAhead(0);
  return {
    env: {
      LD_PRELOAD: LIBRARY!,
      FAKETIME_TIMESTAMP_FILE: file,
      FAKETIME_CACHE_DURATION: '1',
      FAKETIME_DONT_FAKE_MONOTONIC: '1',
    },
    setAhead,
  };
}
