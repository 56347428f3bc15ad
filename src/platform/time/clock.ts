/** The one source of time, so that tests can move it. Milliseconds since 1970. */
export interface Clock {
  now(): number;
}

/** The machine's clock, which may be set. */
export const systemClock: Clock = { now: () => Date.now() };

/** The clocks of the machines of one installation differ by less. */
export const CLOCKS_DIFFER_MS = 5 * 60_000;

/** A clock that is set back further was wrong before: what it noted of a time to come is not believed. */
export const CLOCK_DOUBT_MS = 3_600_000;

export const DAY_MS = 86_400_000;

/** The service's clock. It goes back only when the machine's was wrong by more than CLOCK_DOUBT_MS. */
export interface ServiceClock extends Clock {
  /** The machine's clock, for what others judge by theirs: one-time passwords, signatures, tokens of providers. */
  machine(): number;
  /** From now on it is no earlier than this moment, at which another process or an earlier one has seen it. */
  notBefore(ms: number): void;
}

/**
 * When the machine's clock is set back, this one goes on at half the speed, by a timer that nothing sets, until the
 * other has caught up.
 */
export function openServiceClock(machine: Clock, timer = (): number => performance.now()): ServiceClock {
  let latestMs = machine.now();
  let seenMs = timer();
  return {
    machine: () => machine.now(),
    now() {
      const machineMs = machine.now();
      const beforeMs = seenMs;
      seenMs = timer();
      const isAhead = latestMs > machineMs && latestMs - machineMs <= CLOCK_DOUBT_MS;
      latestMs = isAhead ? latestMs + (seenMs - beforeMs) / 2 : machineMs;
      return Math.floor(latestMs);
    },
    notBefore(ms) {
      if (ms - machine.now() <= CLOCK_DOUBT_MS) latestMs = Math.max(latestMs, ms);
    },
  };
}

/**
 * True until a moment. One that is further ahead than `longestMs` after now was noted by a clock that has been set back
 * since, and counts as over (decision 46).
 */
export function isToCome(ms: number, longestMs: number, nowMs: number): boolean {
  return ms > nowMs && ms <= nowMs + longestMs + CLOCKS_DIFFER_MS;
}

/** The time of a document's next version, later than that of the one that is replaced: no two have the same `ETag`. */
export function versionTime({ updatedAt }: { updatedAt?: unknown }, nowMs: number): Date {
  return new Date(Math.max(nowMs, updatedAt instanceof Date ? updatedAt.getTime() + 1 : nowMs));
}
