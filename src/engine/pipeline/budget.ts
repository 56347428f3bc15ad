import { nextTurn } from '../scheduler.js';
import { CODES, EngineError } from '../errors.js';

/** How much one command may still spend, and when it has to let others run. */
export interface Budget {
  /** Counts documents; true when the loop has to `await pause()`. */
  tick(documents: number): boolean;
  /** Throws when the time is up (50) or the client is gone (11601); the next `tick` looks at the clock. */
  check(): void;
  /** Lets the event loop run; throws when the time is up (50) or the client is gone (11601). */
  pause(): Promise<void>;
  /** Throws when the memory is used up (146). */
  charge(bytes: number): void;
  release(bytes: number): void;
}

export interface BudgetOptions {
  /** MongoDB's maxTimeMS; 0 or absent = no limit. */
  readonly maxTimeMS?: number;
  readonly memoryBytes?: number;
  readonly signal?: AbortSignal;
}

/** MongoDB's limit for a blocking stage. */
const MEMORY_BYTES = 100 * 1024 * 1024;
const SLICE_MS = 2;
const SLICE_DOCUMENTS = 512;
/** Looking at the clock costs as much as looking at a small document. */
const DOCUMENTS_PER_LOOK = 8;

/** The clock starts now. */
export function openBudget(options: BudgetOptions = {}): Budget {
  const { maxTimeMS = 0, memoryBytes = MEMORY_BYTES, signal } = options;
  const start = performance.now();
  const deadline = maxTimeMS > 0 ? start + maxTimeMS : Infinity;
  let sliceEnd = start + SLICE_MS;
  let documents = 0;
  let looked = 0;
  let used = 0;

  function checkAt(now: number): void {
    if (signal?.aborted === true) throw new EngineError(CODES.Interrupted, 'operation was interrupted');
    if (now > deadline) throw new EngineError(CODES.MaxTimeMSExpired, 'operation exceeded time limit');
  }

  return {
    tick(count) {
      documents += count;
      looked += count;
      if (looked < DOCUMENTS_PER_LOOK) return false;
      looked = 0;
      return documents >= SLICE_DOCUMENTS || performance.now() >= sliceEnd;
    },
    check() {
      looked = DOCUMENTS_PER_LOOK;
      checkAt(performance.now());
    },
    async pause() {
      checkAt(performance.now());
      await nextTurn();
      const now = performance.now();
      checkAt(now);
      sliceEnd = now + SLICE_MS;
      documents = 0;
    },
    charge(bytes) {
      used += bytes;
      if (used > memoryBytes) {
        throw new EngineError(
          CODES.ExceededMemoryLimit,
          `the operation needs more than its ${String(memoryBytes)} bytes of memory`,
        );
      }
    },
    release(bytes) {
      used -= bytes;
    },
  };
}
