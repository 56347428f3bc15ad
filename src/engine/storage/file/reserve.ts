import { randomBytes } from 'node:crypto';
import { closeSync, openSync, statfsSync, statSync, truncateSync, writeSync } from 'node:fs';
import { join } from 'node:path';

const RESERVE_FILE = 'reserve';
const FULL_BYTES = 2 * 1024 * 1024;
/** Bytes given back at once: others may write too, and must not get all of it. */
const STEP_BYTES = 256 * 1024;
/** The disk keeps at least so much when the reserve is filled. */
const LEFT_BYTES = 1024 * 1024;

/**
 * A file that holds room on the disk for what makes room: a removal changes pages before it frees any, so on a full
 * disk nothing could be removed. Any process may fill it or take of it.
 */
export class Reserve {
  private readonly path: string;

  constructor(private readonly dataDir: string) {
    this.path = join(dataDir, RESERVE_FILE);
  }

  /** Runs `work`, again and again with a step of the reserve given to the disk while it fails for want of space. */
  async use<T>(work: () => Promise<T>): Promise<T> {
    for (;;) {
      try {
        return await work();
      } catch (error) {
        if (!isFull(error) || !this.giveStep()) throw error;
      }
    }
  }

  /** Takes what is missing when the disk has it; a disk that fills up at that moment is no error. */
  fill(): void {
    try {
      const missing = FULL_BYTES - this.size();
      if (missing <= 0) return;
      const { bavail, bsize } = statfsSync(this.dataDir);
      if (bavail * bsize < missing + LEFT_BYTES) return;
      const file = openSync(this.path, 'a', 0o600);
      try {
        // Random, so that no file system keeps it in less room than it is to hold.
        for (let left = missing; left > 0; left -= STEP_BYTES) writeSync(file, randomBytes(Math.min(left, STEP_BYTES)));
      } finally {
        closeSync(file);
      }
    } catch {
      // Full after all, or not writable: the next round looks again.
    }
  }

  /** False when nothing is left to give. */
  private giveStep(): boolean {
    try {
      const size = this.size();
      if (size === 0) return false;
      truncateSync(this.path, Math.max(0, size - STEP_BYTES));
      return true;
    } catch {
      return false;
    }
  }

  private size(): number {
    return statSync(this.path, { throwIfNoEntry: false })?.size ?? 0;
  }
}

function isFull(error: unknown): boolean {
  return error instanceof Error && (error as { code?: unknown }).code === 'NO_SPACE';
}
