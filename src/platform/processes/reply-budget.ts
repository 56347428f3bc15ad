import { unavailable } from '../../errors.js';
import { waitInLine } from './wait-in-line.js';

/** Bytes of large replies that a process holds until their clients have taken them, shared out by tenant. */
export interface ReplyBudget {
  held(): number;
  /**
   * Reserves bytes at once; false when they are not free, or when others of the tenant have waited for longer.
   */
  take(tenant: string, bytes: number): boolean;
  /**
   * Reserves bytes, at most what one tenant may have, when it is the tenant's turn, and returns their number.
   * 503 BUSY when too many wait, or for too long; ends when `signal` aborts.
   */
  wait(tenant: string, bytes: number, signal?: AbortSignal): Promise<number>;
  /** Reserves what is in memory already, beyond the budget too: others then wait the longer. */
  add(tenant: string, bytes: number): void;
  giveBack(tenant: string, bytes: number): void;
  /**
   * Waits until the tenant has some room; null when it has now. For work whose reply is not known before: it is counted
   * by `add`. Fails as `wait`.
   */
  room(tenant: string): Promise<void> | null;
}

interface Waiting {
  tenant: string;
  bytes: number;
  start: () => void;
}

const WAITING_LIMITS = { inAll: 400, ofTenant: 200, ms: 10_000 };

/**
 * A budget of `total` bytes, of which one tenant has half at most: others are answered although it reads slowly. The
 * tenant that holds least is next.
 */
export function openReplyBudget(total: number, limits = WAITING_LIMITS): ReplyBudget {
  const share = Math.floor(total / 2);
  const byTenant = new Map<string, number>();
  const waiting: Waiting[] = [];
  let held = 0;

  const heldBy = (tenant: string): number => byTenant.get(tenant) ?? 0;
  const fitsTenant = (tenant: string, bytes: number): boolean => heldBy(tenant) + bytes <= share;
  const fits = (tenant: string, bytes: number): boolean => held + bytes <= total && fitsTenant(tenant, bytes);
  const add = (tenant: string, bytes: number): void => {
    held += bytes;
    const now = heldBy(tenant) + bytes;
    if (now > 0) byTenant.set(tenant, now);
    else byTenant.delete(tenant);
  };
  /** The one that has waited longest of the tenant that holds least and may have more. */
  const findNext = (): Waiting | undefined => {
    const first = new Map<string, Waiting>();
    for (const entry of waiting) if (!first.has(entry.tenant)) first.set(entry.tenant, entry);
    let next: Waiting | undefined;
    for (const entry of first.values()) {
      if (!fitsTenant(entry.tenant, entry.bytes)) continue;
      if (!next || heldBy(entry.tenant) < heldBy(next.tenant)) next = entry;
    }
    return next;
  };
  const startNext = (): void => {
    for (let next = findNext(); next && fits(next.tenant, next.bytes); next = findNext()) {
      waiting.splice(waiting.indexOf(next), 1);
      add(next.tenant, next.bytes);
      next.start();
    }
  };
  const wait = async (tenant: string, wanted: number, signal?: AbortSignal): Promise<number> => {
    const bytes = Math.min(wanted, share);
    const ofTenant = waiting.filter((other) => other.tenant === tenant).length;
    if (waiting.length >= limits.inAll || ofTenant >= limits.ofTenant) throw busy();
    await waitInLine({ ms: limits.ms, tooLong: busy, signal }, (start) => {
      const entry: Waiting = { tenant, bytes, start };
      waiting.push(entry);
      startNext();
      return () => {
        waiting.splice(waiting.indexOf(entry), 1);
        startNext();
      };
    });
    return bytes;
  };
  /** Those of a tenant that have waited for longer come first. */
  const mayTake = (tenant: string, bytes: number): boolean =>
    fits(tenant, bytes) && !waiting.some((other) => other.tenant === tenant);
  const giveBack = (tenant: string, bytes: number): void => {
    add(tenant, -bytes);
    if (waiting.length > 0) startNext();
  };

  return {
    held: () => held,
    take(tenant, bytes) {
      if (!mayTake(tenant, bytes)) return false;
      add(tenant, bytes);
      return true;
    },
    wait,
    add,
    giveBack,
    room(tenant) {
      if (held === 0 || mayTake(tenant, 1)) return null;
      return wait(tenant, 1).then((reserved) => giveBack(tenant, reserved));
    },
  };
}

const busy = (): Error =>
  unavailable('BUSY', 'Too many large replies are under way: try again in a moment, or ask for less at once', {
    retryAfterSeconds: 1,
  });
