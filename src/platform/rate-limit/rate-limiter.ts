import type { Rate } from '../../config/setting-readers.js';
import { isToCome, type Clock } from '../time/clock.js';
import type { MemoryCounter, Grant, RateCounter } from './memory-counter.js';

/** The decision about a request, with the figures for the client. */
export interface Verdict {
  allowed: boolean;
  limit: number;
  left: number;
  /** End of the window, milliseconds since 1970. */
  resetMs: number;
}

export interface RateLimiter {
  /** Uses up one of the key's `rate.count` in the present window, if any is left. */
  consume(key: string, rate: Rate): Promise<Verdict>;
  /** The same at once; null, and nothing is used up, where another counter has to be asked. */
  consumeNow(key: string, rate: Rate): Verdict | null;
  close(): Promise<void>;
}

/** This process's knowledge of one key's window. */
interface Known {
  limit: number;
  resetMs: number;
  /** Taken from the counter, not yet used. */
  spare: number;
  /** Left for all at the last request to the counter. */
  left: number;
  /** A refusal counts until then; others may give back what they did not need. */
  refusedUntilMs: number;
  usedSinceTick: boolean;
  /** Requests that wait for the counter's answer. */
  waiting: Waiting[];
  asking: boolean;
}

interface Waiting {
  resolve: (verdict: Verdict) => void;
  reject: (error: unknown) => void;
}

/**
 * A take asks for this part of what is left, at least for one. Limits below it are counted use by use: then no process
 * can hold anything that another one lacks, and the limit is met exactly. With larger limits a process may refuse up to
 * 1/64 of the limit too early, for about two seconds, while another holds unused what it has taken; no caller ever
 * exceeds beyond a limit.
 */
const SHARE = 64;
const TICK_MS = 1_000;
const ASK_AGAIN_MS = 1_000;
const MAX_KNOWN = 100_000;

/**
 * Limits by a counter that may be elsewhere: takes several uses at once from large limits, asks once for all requests
 * that wait, and remembers refusals.
 */
export function openRateLimiter(counter: RateCounter, clock: Clock): RateLimiter {
  const windows = openWindows(clock);
  const holding = new Set<string>();

  const settle = (key: string, entry: Known, asked: number, { granted, left, resetMs }: Grant): void => {
    entry.resetMs = resetMs;
    entry.left = left;
    entry.spare += granted;
    const answered = entry.waiting.splice(0, asked);
    for (const { resolve } of answered) {
      if (entry.spare > 0) {
        resolve(use(entry));
      } else {
        entry.refusedUntilMs = entry.limit < 2 * SHARE ? resetMs : Math.min(resetMs, clock.now() + ASK_AGAIN_MS);
        resolve(refusal(entry));
      }
    }
    if (entry.spare > 0) holding.add(key);
  };

  const ask = async (key: string, entry: Known, rate: Rate): Promise<void> => {
    entry.asking = true;
    while (entry.waiting.length > 0) {
      const asked = entry.waiting.length;
      try {
        const want = Math.max(asked, Math.floor(entry.left / SHARE));
        settle(key, entry, asked, await counter.take(key, want, rate));
      } catch (error) {
        for (const { reject } of entry.waiting.splice(0, asked)) reject(error);
      }
    }
    entry.asking = false;
  };

  const tick = (): void => {
    for (const key of holding) {
      const entry = windows.find(key);
      if (entry?.usedSinceTick) {
        entry.usedSinceTick = false;
        continue;
      }
      holding.delete(key);
      void giveBack(key, entry);
    }
    windows.forgetEnded();
  };
  const giveBack = async (key: string, entry: Known | undefined): Promise<void> => {
    if (!entry || entry.spare === 0) return;
    const { spare } = entry;
    entry.spare = 0;
    entry.left += spare;
    // Not returned, it is lost until the window ends: fewer requests pass, never more.
    await Promise.resolve(counter.giveBack(key, spare, entry.resetMs)).catch(() => undefined);
  };
  const timer = setInterval(tick, TICK_MS);
  timer.unref();

  const consumeNow = (key: string, rate: Rate): Verdict | null => {
    const entry = windows.current(key, rate);
    if (entry.waiting.length > 0) return null;
    if (entry.spare > 0) return use(entry);
    return entry.refusedUntilMs > clock.now() ? refusal(entry) : null;
  };

  return {
    consumeNow,
    async consume(key, rate) {
      const verdict = consumeNow(key, rate);
      if (verdict) return verdict;
      const entry = windows.current(key, rate);
      return new Promise((resolve, reject) => {
        entry.waiting.push({ resolve, reject });
        if (!entry.asking) void ask(key, entry, rate);
      });
    },
    async close() {
      clearInterval(timer);
      // All at once: one after the other would take for ever with a counter that does not answer.
      await Promise.all([...holding].map(async (key) => giveBack(key, windows.find(key))));
      await counter.close();
    },
  };
}

/** What is known of each key, its present window; of too many keys the oldest is forgotten. */
function openWindows(clock: Clock) {
  const known = new Map<string, Known>();
  return {
    find: (key: string): Known | undefined => known.get(key),
    current(key: string, rate: Rate): Known {
      const nowMs = clock.now();
      const found = known.get(key);
      if (found?.limit === rate.count && isToCome(found.resetMs, rate.windowMs, nowMs)) return found;
      if (found && found.waiting.length > 0) return found;
      known.delete(key);
      if (known.size >= MAX_KNOWN) known.delete(known.keys().next().value!);
      const entry: Known = {
        limit: rate.count,
        resetMs: nowMs + rate.windowMs,
        spare: 0,
        left: rate.count,
        refusedUntilMs: 0,
        usedSinceTick: true,
        waiting: [],
        asking: false,
      };
      known.set(key, entry);
      return entry;
    },
    forgetEnded(): void {
      const nowMs = clock.now();
      for (const [key, { resetMs, waiting }] of known) {
        if (resetMs > nowMs || waiting.length > 0) break;
        known.delete(key);
      }
    },
  };
}

/** Limits by a counter in this process, which knows everything there is to know. */
export function openLocalRateLimiter(counter: MemoryCounter): RateLimiter {
  const consumeNow = (key: string, rate: Rate): Verdict => {
    const { granted, left, resetMs } = counter.take(key, 1, rate);
    return { allowed: granted > 0, limit: rate.count, left, resetMs };
  };
  return {
    consumeNow,
    consume: (key, rate) => Promise.resolve(consumeNow(key, rate)),
    close: () => counter.close(),
  };
}

function use(entry: Known): Verdict {
  entry.spare--;
  entry.usedSinceTick = true;
  return { allowed: true, limit: entry.limit, left: entry.left + entry.spare, resetMs: entry.resetMs };
}

function refusal({ limit, resetMs }: Known): Verdict {
  return { allowed: false, limit, left: 0, resetMs };
}
