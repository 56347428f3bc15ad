import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

/** Holds the id of the process that repairs the store. */
const MARK_FILE = 'repairing';

/** Marks the store as being repaired by this process; to be called before it looks who else has the file open. */
export function markRepair(dataDir: string): void {
  writeFileSync(join(dataDir, MARK_FILE), `${process.pid}\n`, { mode: 0o600 });
}

/** Takes the mark of this process away. */
export function unmarkRepair(dataDir: string): void {
  rmSync(join(dataDir, MARK_FILE), { force: true });
}

/**
 * The process that is repairing the store, null for none. `processes`: those that have the file open; a mark of another
 * was left by one that was killed.
 */
export function findRepairer(dataDir: string, processes: () => readonly number[]): number | null {
  let pid: number;
  try {
    pid = Number(readFileSync(join(dataDir, MARK_FILE), 'utf8'));
  } catch {
    return null;
  }
  return pid !== process.pid && processes().includes(pid) ? pid : null;
}
