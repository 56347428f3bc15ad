import { abandoned, unavailable } from '../../errors.js';

/** Bytes of large replies that a process holds until their clients have taken them, shared out by party. */
export interface ReplyBudget {
  held(): number;
  /**
   * Reserves so many bytes at once; false when they are not free, or when others of the party have waited for longer.
   */
  take(party: string, bytes: number): boolean;
  /**
   * Reserves so many bytes, or as many as one party may have, when it is the party's turn, and returns their number.
   * 503 BUSY when too many wait, or for too long; ends when `signal` aborts.
   */
  wait(party: string, bytes: number, signal?: AbortSignal): Promise<number>;
  /** Reserves what is in memory already, beyond the budget too: others then wait the longer. */
  add(party: string, bytes: number): void;
  giveBack(party: string, bytes: number): void;
  /**
   * Waits until the party has some room; null when it has now. For work whose reply is not known before: it is counted
   * by `add`. Fails as `wait`.
   */
  room(party: string): Promise<void> | null;
}

interface Waiting {
  party: string;
  bytes: number;
  start: () => void;
}

const WAITING_LIMITS = { inAll: 400, ofParty: 200, ms: 10_000 };

/**
 * A budget of `total` bytes, of which one party has half at most: others are answered although it reads slowly. The
 * party that holds least is next.
 */
export function openReplyBudget(total: number, limits = WAITING_LIMITS): ReplyBudget {
  const share = Math.floor(total / 2);
  const byParty = new Map<string, number>();
  const waiting: Waiting[] = [];
  let held = 0;

  const heldBy = (party: string): number => byParty.get(party) ?? 0;
  const fitsParty = (party: string, bytes: number): boolean => heldBy(party) + bytes <= share;
  const fits = (party: string, bytes: number): boolean => held + bytes <= total && fitsParty(party, bytes);
  const add = (party: string, bytes: number): void => {
    held += bytes;
    const now = heldBy(party) + bytes;
    if (now > 0) byParty.set(party, now);
    else byParty.delete(party);
  };
  /** The one that has waited longest of the party that holds least and may have more. */
  const findNext = (): Waiting | undefined => {
    const first = new Map<string, Waiting>();
    for (const entry of waiting) if (!first.has(entry.party)) first.set(entry.party, entry);
    let next: Waiting | undefined;
    for (const entry of first.values()) {
      if (!fitsParty(entry.party, entry.bytes)) continue;
      if (!next || heldBy(entry.party) < heldBy(next.party)) next = entry;
    }
    return next;
  };
  const startNext = (): void => {
    for (let next = findNext(); next && fits(next.party, next.bytes); next = findNext()) {
      waiting.splice(waiting.indexOf(next), 1);
      add(next.party, next.bytes);
      next.start();
    }
  };
  const wait = async (party: string, wanted: number, signal?: AbortSignal): Promise<number> => {
    const bytes = Math.min(wanted, share);
    const ofParty = waiting.filter((other) => other.party === party).length;
    if (waiting.length >= limits.inAll || ofParty >= limits.ofParty) throw busy();
    if (signal?.aborted) throw abandoned();
    await new Promise<void>((resolve, reject) => {
      const settle = (): void => {
        clearTimeout(timer);
        signal?.removeEventListener('abort', leave);
      };
      const entry: Waiting = {
        party,
        bytes,
        start() {
          settle();
          resolve();
        },
      };
      const giveUp = (error: Error): void => {
        settle();
        waiting.splice(waiting.indexOf(entry), 1);
        reject(error);
        startNext();
      };
      const leave = (): void => giveUp(abandoned());
      const timer = setTimeout(() => giveUp(busy()), limits.ms);
      signal?.addEventListener('abort', leave);
      waiting.push(entry);
      startNext();
    });
    return bytes;
  };
  /** Those of a party that have waited for longer come first. */
  const mayTake = (party: string, bytes: number): boolean =>
    fits(party, bytes) && !waiting.some((other) => other.party === party);
  const giveBack = (party: string, bytes: number): void => {
    add(party, -bytes);
    if (waiting.length > 0) startNext();
  };

  return {
    held: () => held,
    take(party, bytes) {
      if (!mayTake(party, bytes)) return false;
      add(party, bytes);
      return true;
    },
    wait,
    add,
    giveBack,
    room(party) {
      if (held === 0 || mayTake(party, 1)) return null;
      return wait(party, 1).then((reserved) => giveBack(party, reserved));
    },
  };
}

const busy = (): Error =>
  unavailable('BUSY', 'Too many large replies are under way: try again in a moment, or ask for less at once', {
    retryAfterSeconds: 1,
  });
