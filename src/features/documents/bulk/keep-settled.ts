import type { App } from '../../../app.js';
import { settleBatches } from './settle-batches.js';

const PAUSE_MS = 10_000;

/**
 * Settles bulk inserts that were left behind, now and every ten seconds, whether or not a worker runs; ends with what
 * it returns. A failure is logged and keeps nothing from starting: what is left is not seen by anybody.
 */
export async function keepBatchesSettled(app: App): Promise<() => Promise<void>> {
  const settle = (): Promise<unknown> =>
    settleBatches(app).catch((error: unknown) => app.log.warn({ err: error }, 'bulk inserts wait to be settled'));
  await settle();
  let running: Promise<unknown> | null = null;
  const timer = setInterval(() => {
    running ??= settle().finally(() => (running = null));
  }, PAUSE_MS);
  timer.unref();
  return async () => {
    clearInterval(timer);
    await running;
  };
}
