import type { Rate } from '../../config/setting-readers.js';

/** The share of a window that a counter granted. */
export interface Grant {
  /** The number granted, from 0 to the number wanted. */
  granted: number;
  /** The number left for everybody after this grant. */
  left: number;
  /** The end of the window, milliseconds since 1970. */
  resetMs: number;
}

/**
 * Counts uses of keys within windows that begin with the first use. Its grants in a window together never exceed the
 * rate's count.
 */
export interface RateCounter {
  /**
   * Takes up to `want` uses. A counter in this process answers at once, one elsewhere by a promise that fails when it
   * cannot be reached.
   */
  take(key: string, want: number, rate: Rate): Grant | Promise<Grant>;
  /** Returns uses that were taken and not needed, if their window still stands. */
  giveBack(key: string, uses: number, resetMs: number): void | Promise<void>;
  close(): Promise<void>;
}
