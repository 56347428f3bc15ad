import type { Environment } from './environment.js';
import { READER_ROW } from './last-commit.js';

/** A snapshot that a process reads from: pages that were freed since it was taken are not used again until it ends. */
export interface HeldSnapshot {
  readonly pid: number;
  /** How long it has been seen at least, in milliseconds. */
  readonly ageMs: number;
}

/** The snapshots that all processes hold at the data file, with their ages as far as this process has watched them. */
export class Snapshots {
  private firstSeen = new Map<string, number>();

  constructor(private readonly environment: Environment) {}

  /** Frees the slots of processes that are dead, then returns the snapshots that are left, the oldest first. */
  check(): HeldSnapshot[] {
    const { store } = this.environment;
    store.resetReadTxn();
    store.readerCheck();
    const now = performance.now();
    const held: HeldSnapshot[] = [];
    const seen = new Map<string, number>();
    for (const [row, pid] of store.readerList().matchAll(READER_ROW)) {
      const key = row.trim();
      const since = this.firstSeen.get(key) ?? now;
      seen.set(key, since);
      held.push({ pid: Number(pid), ageMs: now - since });
    }
    this.firstSeen = seen;
    return held.sort((a, b) => b.ageMs - a.ageMs);
  }
}
