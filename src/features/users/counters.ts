import type { ObjectId } from 'bson';
import type { App } from '../../app.js';
import { storeOf } from '../../platform/database/database.js';
import { isToCome } from '../../platform/time/clock.js';

export const COUNTERS = 'counters';

/** How many events may be counted. */
export interface Cap {
  max: number;
  /** Within this time; in a row, each no longer than this after the one before. */
  ms: number;
  inARow?: true;
}

/** The last events of one kind, so that all processes count together. */
interface Counter {
  /** A keyed hash: the record contains no personal data. */
  _id: string;
  projectId: ObjectId;
  /** The newest first. */
  at: Date[];
  /** No event counts from then on. */
  expiresAt: Date;
  updatedAt: Date;
}

/** An event that was counted, so that it can be taken back. */
export interface Counted {
  id: string;
  at: Date;
}

const counterStore = storeOf<Counter>(COUNTERS);

/** The id of a counter; `what` says what it counts of whom. */
export function counterId(app: App, projectId: ObjectId, ...what: string[]): string {
  return app.secrets.mac('counter', JSON.stringify([projectId.toHexString(), ...what]));
}

/** The events that count now. */
function live(at: readonly Date[], { ms, inARow }: Cap, nowMs: number): readonly Date[] {
  const counts = (one: Date): boolean => isToCome(one.getTime() + ms, ms, nowMs);
  return inARow ? (at.length > 0 && counts(at[0]!) ? at : []) : at.filter(counts);
}

/** The time until one more may be counted; 0 when it may be now. */
function waitFor(at: readonly Date[], cap: Cap, nowMs: number): number {
  const counting = live(at, cap, nowMs);
  if (counting.length < cap.max) return 0;
  return counting[cap.inARow ? 0 : cap.max - 1]!.getTime() + cap.ms - nowMs;
}

/** Counts an event unless one of the caps is full; then nothing is counted, and the answer is the time to wait. */
export async function countEvent(
  app: App,
  projectId: ObjectId,
  id: string,
  caps: readonly Cap[],
): Promise<Counted | { waitMs: number }> {
  const nowMs = app.clock.now();
  const at = new Date(nowMs);
  const longest = caps.reduce((one, other) => (other.ms > one.ms ? other : one));
  const most = Math.max(...caps.map(({ max }) => max));
  let waitMs = 0;
  await app.db.transform(COUNTERS, id, (stored) => {
    const known = stored as Counter | null;
    const events = known?.at ?? [];
    waitMs = Math.max(...caps.map((cap) => waitFor(events, cap, nowMs)));
    if (waitMs > 0) return stored;
    return {
      _id: id,
      projectId,
      at: [at, ...live(events, longest, nowMs)].slice(0, most),
      expiresAt: new Date(nowMs + longest.ms),
      updatedAt: new Date(Math.max(nowMs, (known?.updatedAt.getTime() ?? 0) + 1)),
    } satisfies Counter;
  });
  return waitMs > 0 ? { waitMs } : { id, at };
}

/** The time to wait by this cap, 0 when there is none; null when nothing was ever counted. */
export async function findWait(app: App, id: string, cap: Cap): Promise<number | null> {
  const counter = await counterStore(app).findOne({ _id: id });
  return counter && waitFor(counter.at, cap, app.clock.now());
}

/** Takes an event back. Harmless to repeat while none is counted at that very moment. */
export async function takeBack(app: App, { id, at }: Counted): Promise<void> {
  await app.db.transform(COUNTERS, id, (stored) => {
    const known = stored as Counter | null;
    const place = known?.at.findIndex((one) => one.getTime() === at.getTime()) ?? -1;
    if (!known || place < 0) return stored;
    return { ...known, at: known.at.toSpliced(place, 1), updatedAt: new Date(known.updatedAt.getTime() + 1) };
  });
}

/** Forgets all events, unless they fill the cap by now: then the answer is the time to wait. */
export async function forgetEvents(app: App, id: string, cap: Cap): Promise<number> {
  let waitMs = 0;
  await app.db.transform(COUNTERS, id, (stored) => {
    waitMs = stored ? waitFor((stored as Counter).at, cap, app.clock.now()) : 0;
    return waitMs > 0 ? stored : null;
  });
  return waitMs;
}

/** Forgets all events, full or not. */
export async function clearCounters(app: App, ids: readonly string[]): Promise<void> {
  await counterStore(app).deleteMany({ _id: { $in: [...ids] } });
}
