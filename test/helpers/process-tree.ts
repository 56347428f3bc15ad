import { readFileSync } from 'node:fs';

/** The processes that one has started, as Linux lists them; none when it has ended. */
export function childrenOf(pid: number): number[] {
  try {
    return readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').split(' ').filter(Boolean).map(Number);
  } catch {
    return [];
  }
}

/** Ends all that descend from a process, wherever they are in what they do. */
export function killDescendants(pid: number): void {
  for (const child of childrenOf(pid)) {
    killDescendants(child);
    try {
      process.kill(child, 'SIGKILL');
    } catch {
      // It has ended meanwhile.
    }
  }
}

/** Whether a process of this id runs. */
export function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}
