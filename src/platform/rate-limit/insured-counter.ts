import type { Logger } from '../logger.js';
import type { Grant, RateCounter } from './rate-counter.js';

/** How often a counter that failed is asked again. */
const RECOVERY_MS = 1_000;

/** Counts with `main`, and with `insurance` while `main` fails: a limit then begins anew once, and requests go on. Both are closed with it. */
export function openInsuredCounter(main: RateCounter, insurance: RateCounter, log: Logger): RateCounter {
  let isAway = false;
  let askAtMs = 0;
  return {
    async take(key, want, rate): Promise<Grant> {
      const nowMs = performance.now();
      if (!isAway || nowMs >= askAtMs) {
        // While it is away a single request finds out whether it is back: that can take as long as the counter's time limit.
        askAtMs = nowMs + RECOVERY_MS;
        try {
          const grant = await main.take(key, want, rate);
          isAway = false;
          return grant;
        } catch (error) {
          if (!isAway)
            log.warn({ err: error }, 'the rate limits’ counter does not answer; counting elsewhere meanwhile');
          isAway = true;
          askAtMs = performance.now() + RECOVERY_MS;
        }
      }
      return insurance.take(key, want, rate);
    },
    async giveBack(key, uses, resetMs) {
      // Which of the two had granted them may be uncertain; a window has its own end, which tells.
      await Promise.allSettled([main.giveBack(key, uses, resetMs), insurance.giveBack(key, uses, resetMs)]);
    },
    async close() {
      await main.close();
      await insurance.close();
    },
  };
}
