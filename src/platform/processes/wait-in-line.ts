import { abandoned } from '../../errors.js';

interface Patience {
  /** The longest wait, for ever unless given, and the error then. */
  ms: number | undefined;
  tooLong: () => Error;
  signal: AbortSignal | undefined;
}

/**
 * Waits until `start` is called, which `join` puts into a line; by what `join` returns the line is left when the wait
 * was too long or `signal` aborts.
 */
export function waitInLine({ ms, tooLong, signal }: Patience, join: (start: () => void) => () => void): Promise<void> {
  return new Promise((resolve, reject) => {
    if (signal?.aborted) {
      reject(abandoned());
      return;
    }
    const settle = (): void => {
      clearTimeout(timer);
      signal?.removeEventListener('abort', onAbort);
    };
    const giveUp = (error: Error): void => {
      settle();
      leave();
      reject(error);
    };
    const onAbort = (): void => giveUp(abandoned());
    const timer = ms === undefined ? undefined : setTimeout(() => giveUp(tooLong()), ms);
    signal?.addEventListener('abort', onAbort, { once: true });
    const leave = join(() => {
      settle();
      resolve();
    });
  });
}
