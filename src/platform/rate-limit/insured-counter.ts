import type { Logger } from '../logger.js';
import type { Grant, RateCounter } from './rate-counter.js';

/** How long a counter that failed is left alone before it is asked again. */
const RECOVERY_MS = 1_000;

/** Counts with `main`, and with `insurance` while `main` fails: a limit then begins anew once, and requests go on. Both are closed with it. */
export function openInsuredCounter(main: RateCounter, insurance: RateCounter, log: Logger): RateCounter {
  let resumeMs = 0;
  const isTrusted = (): boolean => performance.now() >= resumeMs;
  const fallBack = (error: unknown): void => {
    if (isTrusted()) log.warn({ err: error }, 'the rate limits’ counter does not answer; counting elsewhere meanwhile');
    resumeMs = performance.now() + RECOVERY_MS;
  };
  return {
    async take(key, want, rate): Promise<Grant> {
      if (isTrusted()) {
        try {
          return await main.take(key, want, rate);
        } catch (error) {
          fallBack(error);
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
