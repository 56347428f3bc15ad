import { retryDelay, type RetrySchedule } from '../../../platform/jobs/job.js';

const SECOND = 1_000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;

/** decisions.md 8: eight attempts within about seventeen and a half hours. */
const DELIVERY_RETRIES: RetrySchedule = {
  delaysMs: [5 * SECOND, MINUTE, 5 * MINUTE, 15 * MINUTE, HOUR, 4 * HOUR, 12 * HOUR],
};

/** A receiver may ask for no more patience than the longest pause of the schedule. */
const MAX_PATIENCE_MS = 12 * HOUR;
const GONE = 410;

export type AttemptVerdict =
  | { kind: 'delivered' }
  /** Again after `delayMs`. */
  | { kind: 'retry'; delayMs: number }
  /** Never again; with `gone` the receiver wants nothing more at all. */
  | { kind: 'failed'; gone: boolean };

export interface AttemptOutcome {
  /** null when there was no answer. */
  status: number | null;
  /** The answer's `Retry-After`, if any. */
  retryAfter?: string;
}

/** Of an answer: what a server sends before one (1xx) is none. */
export function isAccepted(status: number): boolean {
  return status < 300;
}

/** The consequence of an attempt for its delivery; `failures` counts those before it, `random` is in [0, 1). */
export function judgeAttempt(outcome: AttemptOutcome, failures: number, nowMs: number, random: number): AttemptVerdict {
  const { status } = outcome;
  if (status !== null && isAccepted(status)) return { kind: 'delivered' };
  if (status === GONE) return { kind: 'failed', gone: true };
  const delayMs = retryDelay(DELIVERY_RETRIES, failures + 1, random);
  if (delayMs === null) return { kind: 'failed', gone: false };
  return { kind: 'retry', delayMs: Math.max(delayMs, readRetryAfter(outcome.retryAfter, nowMs)) };
}

/** Seconds or an HTTP date, as milliseconds from now; 0 for anything else. */
function readRetryAfter(text: string | undefined, nowMs: number): number {
  if (text === undefined) return 0;
  const asked = /^\d{1,9}$/.test(text) ? Number(text) * SECOND : Date.parse(text) - nowMs;
  return Number.isFinite(asked) ? Math.min(Math.max(0, asked), MAX_PATIENCE_MS) : 0;
}
