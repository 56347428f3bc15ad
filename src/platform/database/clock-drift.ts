import { CLOCK_DOUBT_MS, type ServiceClock } from '../time/clock.js';
import { type Database, unlessDuplicate, storeOf } from './database.js';
import type { Logger } from '../observe/logger.js';

/** The state of the clock as all processes together know it: the latest moment that any of them has seen. */
interface ClockRecord {
  _id: 'clock';
  seenAt: Date;
  /** It was moved, and is not believed before this moment. */
  doubtedUntil: Date | null;
}

/**
 * A service that was off for no more than this, a night say, goes on as if nothing had been; longer, and it could be
 * the clock that has moved.
 */
const MAX_GAP_MS = 26 * 3_600_000;
/** The time for which a clock has to go on evenly before it is trusted again: enough for an operator to notice. */
const TRIAL_MS = 24 * 3_600_000;

interface Watching {
  readonly db: Database;
  readonly clock: ServiceClock;
  readonly log: Logger;
}

const clockStore = storeOf<ClockRecord>('clock_watch');

/** Has a process that starts go on from the latest moment that others, or an earlier one, have seen. */
export async function continueClock(deps: Omit<Watching, 'log'>): Promise<void> {
  const known = await clockStore(deps).findOne({ _id: 'clock' });
  if (known) deps.clock.notBefore(known.seenAt.getTime());
}

/**
 * True if the clock has gone on evenly for a day. Jobs that remove expired records permanently ask it at least once an
 * hour: by a clock that is wrong by a year everything is expired, and waiting a day loses nothing.
 */
export async function isClockSteady(deps: Watching): Promise<boolean> {
  for (;;) {
    const known = await clockStore(deps).findOne({ _id: 'clock' });
    if (known) deps.clock.notBefore(known.seenAt.getTime());
    const nowMs = deps.clock.now();
    const moved = known !== null && isMoved(known.seenAt.getTime(), nowMs);
    const stillDoubted = known?.doubtedUntil && known.doubtedUntil.getTime() > nowMs ? known.doubtedUntil : null;
    const next = { seenAt: new Date(nowMs), doubtedUntil: moved ? new Date(nowMs + TRIAL_MS) : stillDoubted };
    if (!(await replace(deps, known, next))) continue;
    if (moved) {
      const from = known.seenAt.toISOString();
      deps.log.warn(
        { from, to: next.seenAt.toISOString() },
        'the clock was moved: nothing is removed for good for a day',
      );
    }
    return next.doubtedUntil === null;
  }
}

function isMoved(seenMs: number, nowMs: number): boolean {
  return nowMs < seenMs - CLOCK_DOUBT_MS || nowMs > seenMs + MAX_GAP_MS;
}

/** False when another process was faster. */
async function replace(deps: Watching, known: ClockRecord | null, next: Omit<ClockRecord, '_id'>): Promise<boolean> {
  if (known) {
    const { _id, seenAt, doubtedUntil } = known;
    return (await clockStore(deps).updateOne({ _id, seenAt, doubtedUntil }, { $set: next })).matchedCount === 1;
  }
  return (await unlessDuplicate(clockStore(deps).insertOne({ _id: 'clock', ...next }))) !== null;
}
