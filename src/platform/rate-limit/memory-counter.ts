import type { Rate } from '../../config/setting-readers.js';
import { CLOCKS_DIFFER_MS, type Clock } from '../time/clock.js';
import type { Grant, KnownWindow, RateCounter } from './rate-counter.js';

/** A window as it is kept and saved. */
export interface CountedWindow {
  used: number;
  limit: number;
  resetMs: number;
}

export interface MemoryCounter extends RateCounter {
  take(key: string, want: number, rate: Rate): Grant;
  giveBack(key: string, uses: number, resetMs: number): void;
  atLeast(windows: readonly KnownWindow[]): void;
  /** Puts a saved window back, unless the key has one already. */
  restore(key: string, window: CountedWindow): void;
  /** Windows that changed since the last call and have used at least `share` of their limit. */
  takeChanged(share: number): [key: string, window: CountedWindow][];
}

/** About 20 MB; beyond it the oldest windows are forgotten first. */
const MAX_WINDOWS = 200_000;
const SWEEP_MS = 5_000;

/** Counts in this process. */
export function openMemoryCounter(clock: Clock, maxWindows = MAX_WINDOWS): MemoryCounter {
  // In the order in which windows began, so that those that are over stand in front.
  const windows = new Map<string, CountedWindow>();
  const changed = new Set<string>();

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
    const window = { used: 0, limit: rate.count, resetMs: nowMs + rate.windowMs };
    windows.set(key, window);
    return window;
  };

  return {
    take(key, want, rate) {
      const nowMs = clock.now();
      let window = windows.get(key);
      // A window that ends later than one that began now could was made before the clock was set back, by more than it
      // is corrected daily.
      const latestMs = nowMs + rate.windowMs + CLOCKS_DIFFER_MS;
      if (!window || window.resetMs <= nowMs || window.resetMs > latestMs) window = begin(key, rate, nowMs);
      const granted = Math.max(0, Math.min(want, rate.count - window.used));
      window.limit = rate.count;
      if (granted > 0) {
        window.used += granted;
        changed.add(key);
      }
      return { granted, left: Math.max(0, rate.count - window.used), resetMs: window.resetMs };
    },
    giveBack(key, uses, resetMs) {
      const window = windows.get(key);
      if (window?.resetMs !== resetMs) return;
      window.used = Math.max(0, window.used - uses);
      changed.add(key);
    },
    atLeast(known) {
      const nowMs = clock.now();
      for (const { key, used, resetMs } of known) {
        if (resetMs <= nowMs) continue;
        const found = windows.get(key);
        const window =
          found && found.resetMs > nowMs ? found : begin(key, { count: used, windowMs: resetMs - nowMs }, nowMs);
        window.used = Math.max(window.used, used);
        changed.add(key);
      }
    },
    restore(key, window) {
      if (!windows.has(key)) windows.set(key, window);
    },
    takeChanged(share) {
      const found: [string, CountedWindow][] = [];
      for (const key of changed) {
        const window = windows.get(key);
        if (window && window.used >= window.limit * share) found.push([key, window]);
      }
      changed.clear();
      return found;
    },
    close() {
      clearInterval(timer);
      return Promise.resolve();
    },
  };
}
