import type { Clock } from '../time/clock.js';
import type { Logger } from '../observe/logger.js';
import { openMemoryCounter, type Grant, type RateCounter } from './memory-counter.js';

/** The interval at which a counter that failed is asked again. */
const RECOVERY_MS = 1_000;

/**
 * Counts with `main`, which is closed with it, and in this process while `main` fails. Counts do not move between the
 * two: during an outage each process begins its windows from zero.
 */
export function openFallbackCounter(main: RateCounter, clock: Clock, log: Logger): RateCounter {
  const memory = openMemoryCounter(clock);
  let isAway = false;
  let askAtMs = 0;
  return {
    async take(key, want, rate): Promise<Grant> {
      const nowMs = performance.now();
      if (isAway && nowMs < askAtMs) return memory.take(key, want, rate);
      // While it is away a single request finds out whether it is back, which can take as long as its time limit.
      askAtMs = nowMs + RECOVERY_MS;
      try {
        const grant = await main.take(key, want, rate);
        isAway = false;
        return grant;
      } catch (error) {
        if (!isAway) log.warn({ err: error }, 'the counter of rate limits does not answer; this process counts alone');
        isAway = true;
        askAtMs = performance.now() + RECOVERY_MS;
        return memory.take(key, want, rate);
      }
    },
    async giveBack(key, uses, resetMs) {
      // The end of the window says which of the two granted them.
      memory.giveBack(key, uses, resetMs);
      await main.giveBack(key, uses, resetMs);
    },
    async close() {
      await main.close();
      await memory.close();
    },
  };
}
