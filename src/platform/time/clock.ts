/** The one source of time, so that tests can move it. Milliseconds since 1970. */
export interface Clock {
  now(): number;
}

export const systemClock: Clock = { now: () => Date.now() };

/** The clocks of the machines of one installation differ by less. */
export const CLOCKS_DIFFER_MS = 5 * 60_000;

/**
 * A moment that was noted as past and lies further ahead than this was noted by a clock that has been set back since;
 * machines differ by less.
 */
export const CLOCK_DOUBT_MS = 3_600_000;

export const DAY_MS = 86_400_000;
