/** Delays between attempts as data: one entry per retry, milliseconds. */
export interface RetrySchedule {
  delaysMs: readonly number[];
  /** Work that must not be given up goes on with the last delay for ever. */
  endless?: boolean;
}

/** Up to this part is added to a delay at random, so that what failed together does not come back together. */
const JITTER = 0.1;

/**
 * Milliseconds until the next try after `failures` failed ones (1 = the first has failed), or null when it is given up.
 * `random` is in [0, 1).
 */
export function retryDelay(schedule: RetrySchedule, failures: number, random: number): number | null {
  const { delaysMs, endless } = schedule;
  const delay = delaysMs[failures - 1] ?? (endless ? delaysMs.at(-1) : undefined);
  return delay === undefined ? null : Math.round(delay * (1 + JITTER * random));
}
