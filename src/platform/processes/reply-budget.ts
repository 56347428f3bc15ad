import { unavailable } from '../../errors.js';
import type { Tenant } from '../../turns.js';
import { waitInLine } from './wait-in-line.js';

/** Bytes of large replies that a process holds until their clients have taken them, by project and address. */
export interface ReplyBudget {
  held(): number;
  /**
   * Reserves bytes at once; false when they are not free, or when others of the tenant have waited for longer.
   */
  take(tenant: Tenant, bytes: number): boolean;
  /**
   * Reserves bytes, at most what the tenant may have, when it is the tenant's turn, and returns their number.
   * 503 BUSY when too many wait, or for too long; ends when `signal` aborts.
   */
  wait(tenant: Tenant, bytes: number, signal?: AbortSignal): Promise<number>;
  /** Reserves what is in memory already, beyond the budget too: others then wait the longer. */
  add(tenant: Tenant, bytes: number): void;
  giveBack(tenant: Tenant, bytes: number): void;
  /**
   * Waits until the tenant has some room; null when it has now. For work whose reply is not known before: it is counted
   * by `add`. Fails as `wait`.
   */
  room(tenant: Tenant): Promise<void> | null;
}

interface Waiting {
  tenant: Tenant;
  bytes: number;
  start: () => void;
}

const WAITING_LIMITS = { inAll: 400, ofProject: 200, ofAddress: 100, ms: 10_000 };

/** What each of some parties holds. */
class Held {
  readonly #bytes = new Map<string, number>();

  constructor(readonly share: number) {}

  of(party: string): number {
    return this.#bytes.get(party) ?? 0;
  }

  add(party: string, bytes: number): void {
    const now = this.of(party) + bytes;
    if (now > 0) this.#bytes.set(party, now);
    else this.#bytes.delete(party);
  }

  fits(party: string, bytes: number): boolean {
    return this.of(party) + bytes <= this.share;
  }
}

/**
 * A budget of `total` bytes, of which one project has half at most and one address an eighth: others are answered
 * although it reads slowly. The project that holds least is next, and of its addresses the one that does.
 */
export function openReplyBudget(total: number, limits = WAITING_LIMITS): ReplyBudget {
  const projects = new Held(Math.floor(total / 2));
  const addresses = new Held(Math.floor(total / 8));
  const waiting: Waiting[] = [];
  let held = 0;

  const shareOf = ({ address }: Tenant): number => (address === '' ? projects : addresses).share;
  const fitsTenant = ({ project, address }: Tenant, bytes: number): boolean =>
    projects.fits(project, bytes) && (address === '' || addresses.fits(address, bytes));
  const fits = (tenant: Tenant, bytes: number): boolean => held + bytes <= total && fitsTenant(tenant, bytes);
  const add = ({ project, address }: Tenant, bytes: number): void => {
    held += bytes;
    projects.add(project, bytes);
    if (address !== '') addresses.add(address, bytes);
  };
  const holdsLess = (one: Tenant, other: Tenant): boolean => {
    const less = projects.of(one.project) - projects.of(other.project);
    return less < 0 || (less === 0 && addresses.of(one.address) < addresses.of(other.address));
  };
  /** The one that has waited longest of the tenant that holds least and may have more. */
  const findNext = (): Waiting | undefined => {
    const first = new Map<string, Waiting>();
    for (const entry of waiting) if (!first.has(nameOf(entry.tenant))) first.set(nameOf(entry.tenant), entry);
    let next: Waiting | undefined;
    for (const entry of first.values()) {
      if (!fitsTenant(entry.tenant, entry.bytes)) continue;
      if (!next || holdsLess(entry.tenant, next.tenant)) next = entry;
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
  const wait = async (tenant: Tenant, wanted: number, signal?: AbortSignal): Promise<number> => {
    const bytes = Math.min(wanted, shareOf(tenant));
    const ofProject = waiting.filter((other) => other.tenant.project === tenant.project).length;
    const ofAddress = tenant.address === '' ? 0 : waiting.filter((other) => isSame(other.tenant, tenant)).length;
    if (waiting.length >= limits.inAll || ofProject >= limits.ofProject || ofAddress >= limits.ofAddress) throw busy();
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
  const mayTake = (tenant: Tenant, bytes: number): boolean =>
    fits(tenant, bytes) && !waiting.some((other) => isSame(other.tenant, tenant));
  const giveBack = (tenant: Tenant, bytes: number): void => {
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

const nameOf = ({ project, address }: Tenant): string => `${project} ${address}`;
const isSame = (one: Tenant, other: Tenant): boolean => one.project === other.project && one.address === other.address;

const busy = (): Error =>
  unavailable('BUSY', 'Too many large replies are under way: try again in a moment, or ask for less at once', {
    retryAfterSeconds: 1,
  });
