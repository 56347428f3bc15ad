import type { Rate } from '../../config/setting-readers.js';
import { isToCome, type Clock } from '../time/clock.js';

interface CountedWindow {
  used: number;
  resetMs: number;
}

export interface MemoryCounter extends RateCounter {
  take(key: string, want: number, rate: Rate): Grant;
  giveBack(key: string, uses: number, resetMs: number): void;
}

/** About 20 MB; beyond it the oldest windows are forgotten first. */
const MAX_WINDOWS = 200_000;
const SWEEP_MS = 5_000;

/** Counts in this process. */
export function openMemoryCounter(clock: Clock, maxWindows = MAX_WINDOWS): MemoryCounter {
  // In the order in which windows began, so that those that are over stand in front.
  const windows = new Map<string, CountedWindow>();

  const sweep = (): void => {
    const nowMs = clock.now();
    for (const [key, { resetMs }] of windows) {
      if (resetMs > nowMs) break;
      windows.delete(key);
    }
  };
  const timer = setInterval(sweep, SWEEP_MS);
  timer.unref();

  const begin = (key: string, rate: Rate, nowMs: number): CountedWindow => {
    windows.delete(key);
    if (windows.size >= maxWindows) windows.delete(windows.keys().next().value!);
    const window = { used: 0, resetMs: nowMs + rate.windowMs };
    windows.set(key, window);
    return window;
  };

  return {
    take(key, want, rate) {
      const nowMs = clock.now();
      let window = windows.get(key);
      if (!window || !isToCome(window.resetMs, rate.windowMs, nowMs)) window = begin(key, rate, nowMs);
      const granted = Math.max(0, Math.min(want, rate.count - window.used));
      window.used += granted;
      return { granted, left: Math.max(0, rate.count - window.used), resetMs: window.resetMs };
    },
    giveBack(key, uses, resetMs) {
      const window = windows.get(key);
      if (window?.resetMs !== resetMs) return;
      window.used = Math.max(0, window.used - uses);
    },
    close() {
      clearInterval(timer);
      return Promise.resolve();
    },
  };
}

/** The share of a window that a counter granted. */
export interface Grant {
  /** The number granted, from 0 to the number wanted. */
  granted: number;
  /** The number left for all after this grant. */
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
