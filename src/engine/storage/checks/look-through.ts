import { setTimeout as wait } from 'node:timers/promises';
import { isMainThread } from 'node:worker_threads';
import { damagedFile } from '../damage.js';
import { holdSnapshot } from '../file/guard-reads.js';
import { PageError } from '../file/page-layout.js';
import type { Storage } from '../storage.js';

/** A process that lives for one command is over before. */
const BEGINS_AFTER_MS = 1_000;
/** A slice of work, and the pause behind it. */
const SLICE_MS = 2;
const PAUSE_MS = 20;

/**
 * Looks at all pages of a file that is too large to be looked through when it is opened, beside other work. Found
 * right, nothing is checked before it is written to any more; damage is noted, and each write goes on being checked.
 */
export async function lookThrough(storage: Storage, signal: AbortSignal): Promise<void> {
  const { environment } = storage;
  const { guard, store, path } = environment;
  if (guard.isOver) return;
  try {
    await wait(BEGINS_AFTER_MS, undefined, { ref: false, signal });
    for (let next: Buffer | null = Buffer.alloc(0); next !== null;) {
      store.resetReadTxn();
      const snapshot = holdSnapshot(store);
      try {
        const ends = performance.now() + SLICE_MS;
        while (next !== null && performance.now() < ends) next = guard.checkLeaf(next);
      } finally {
        snapshot.done();
      }
      await wait(PAUSE_MS, undefined, { ref: false, signal });
    }
    guard.trust();
  } catch (error) {
    // Threads find what the main one finds. Else it was closed in between.
    if (error instanceof PageError && isMainThread) storage.damage.judge(damagedFile(path, error.message), null);
  }
}
