import type { Rate } from '../../config/setting-readers.js';
import type { Clock } from '../time/clock.js';
import type { Logger } from '../observe/logger.js';
import type { Grant, KnownWindow, RateCounter } from './rate-counter.js';

/**
 * The news about a remote counter. One that is connected again may have lost its counts; one that answers has not been
 * away, or hung only.
 */
export type CounterNews = 'lost' | 'connected' | 'answers';

/** A counter that reports its own state at least once a second. */
export interface WatchedCounter extends RateCounter {
  onNews(listener: (news: CounterNews) => void): void;
}

/** The interval at which a counter that failed is asked again. */
const RECOVERY_MS = 1_000;
const MAX_KNOWN = 100_000;
const TOLD_AT_ONCE = 500;

interface Known extends KnownWindow {
  /**
   * The era in which the window was last counted; a later era has another counter, or the same one with its counts
   * lost.
   */
  era: number;
}

/**
 * Counts with `main`, and with `insurance` while `main` fails; both are closed with it. Counts go along from one to the
 * other: what this process knows of a window it tells before the first use that it takes elsewhere, and it tells of all
 * other windows at once, for those that have used less of them.
 */
export function openInsuredCounter(
  main: RateCounter | WatchedCounter,
  insurance: RateCounter,
  clock: Clock,
  log: Logger,
): RateCounter {
  // In the order in which they became known, so that those that are over stand in front.
  const known = new Map<string, Known>();
  let era = 0;
  let eraBeganMs = -Infinity;
  let isAway = false;
  let askAtMs = 0;
  let closed = false;

  const note = (key: string, { left, resetMs }: Grant, rate: Rate, countedIn: number): void => {
    const used = Math.max(0, rate.count - left);
    const found = known.get(key);
    if (found) {
      Object.assign(found, { used, resetMs, era: countedIn });
      return;
    }
    const nowMs = clock.now();
    for (const [old, window] of known) {
      if (window.resetMs > nowMs && known.size < MAX_KNOWN) break;
      known.delete(old);
    }
    known.set(key, { key, used, resetMs, era: countedIn });
  };

  const tellAll = async (counter: RateCounter, told: number): Promise<void> => {
    const nowMs = clock.now();
    const windows = [...known.values()].filter((window) => window.era !== told && window.resetMs > nowMs);
    windows.sort((a, b) => b.used - a.used);
    for (let at = 0; at < windows.length && era === told; at += TOLD_AT_ONCE) {
      // One that fails is told of with its next use.
      await Promise.resolve(counter.atLeast(windows.slice(at, at + TOLD_AT_ONCE))).catch(() => undefined);
    }
  };
  const beginEra = (away: boolean): void => {
    isAway = away;
    era++;
    eraBeganMs = performance.now();
    void tellAll(away ? insurance : main, era);
  };
  const lose = (error: unknown): void => {
    askAtMs = performance.now() + RECOVERY_MS;
    if (isAway) return;
    log.warn({ err: error }, 'the rate limits’ counter does not answer; counting elsewhere meanwhile');
    beginEra(true);
  };
  if ('onNews' in main) {
    main.onNews((news) => {
      if (closed) return;
      if (news === 'lost' && !isAway) lose(new Error('the connection was lost'));
      if (news === 'connected' || (news === 'answers' && isAway)) beginEra(false);
    });
  }

  /**
   * Reports to `main` the use of a window in this process and, while windows from before its return last, in the
   * insurance, by all who counted there.
   */
  const bringBack = async (key: string, rate: Rate): Promise<void> => {
    const here = known.get(key);
    const counted = await insurance.take(key, 0, rate);
    const windows: KnownWindow[] = [{ key, used: rate.count - counted.left, resetMs: counted.resetMs }];
    if (here && here.resetMs > clock.now()) windows.unshift(here);
    await main.atLeast(windows.filter(({ used }) => used > 0));
  };
  const countInMain = async (key: string, want: number, rate: Rate): Promise<Grant> => {
    const countedIn = era;
    const isRecent = era > 0 && performance.now() - eraBeganMs < rate.windowMs;
    if (isAway || (isRecent && known.get(key)?.era !== era)) await bringBack(key, rate);
    const grant = await main.take(key, want, rate);
    const isBack = isAway && countedIn === era;
    if (isBack) beginEra(false);
    note(key, grant, rate, isBack ? era : countedIn);
    return grant;
  };
  const countInInsurance = async (key: string, want: number, rate: Rate): Promise<Grant> => {
    const countedIn = era;
    const here = known.get(key);
    if (here && here.era !== era) await insurance.atLeast([here]);
    const grant = await insurance.take(key, want, rate);
    note(key, grant, rate, countedIn);
    return grant;
  };

  return {
    async take(key, want, rate): Promise<Grant> {
      const nowMs = performance.now();
      if (!isAway || nowMs >= askAtMs) {
        // While it is away a single request finds out whether it is back: that can take as long as the counter's time
        // limit.
        if (isAway) askAtMs = nowMs + RECOVERY_MS;
        try {
          return await countInMain(key, want, rate);
        } catch (error) {
          lose(error);
        }
      }
      return countInInsurance(key, want, rate);
    },
    async giveBack(key, uses, resetMs) {
      const here = known.get(key);
      if (here?.resetMs === resetMs) here.used = Math.max(0, here.used - uses);
      // Which of the two had granted them may be uncertain; a window has its own end, which tells.
      await Promise.allSettled([main.giveBack(key, uses, resetMs), insurance.giveBack(key, uses, resetMs)]);
    },
    atLeast(windows) {
      for (const { key, used, resetMs } of windows) {
        const found = known.get(key);
        if (!found || found.resetMs <= clock.now()) known.set(key, { key, used, resetMs, era });
        else found.used = Math.max(found.used, used);
      }
      return (isAway ? insurance : main).atLeast(windows);
    },
    async close() {
      closed = true;
      await main.close();
      await insurance.close();
    },
  };
}
