import { abandoned, unavailable } from './errors.js';

/** For whom a piece of work is done. */
export interface Tenant {
  /** Empty for work of no project. */
  project: string;
  /** The network address of a client; empty for work that no address counts, as that of the service itself. */
  address: string;
}

/** How much may be held: of all, of one project, and of one address. */
export interface Shares {
  all: number;
  project?: number;
  address?: number;
  /** An address may have more while half of all, and of its project's share, stays free for others. */
  lendsToAddress?: boolean;
  /** What only one project may have of all. */
  reserve?: { project: string; amount: number };
}

/** Who has to leave something for others: an address or a project that has its share, or all. */
export type LimitScope = 'address' | 'project' | 'all';

export interface FullShare {
  scope: LimitScope;
  limit: number;
}

export interface LimiterOptions {
  shares: Shares;
  /** The number that may wait; any unless given. */
  waiting?: Shares;
  /** The longest wait; any unless given. */
  maxWaitMs?: number;
  /** The error when too many wait, or for too long: 503 BUSY unless given. */
  refuse?: (full: FullShare, waiting: number) => Error;
}

/** What tenants hold of a whole. */
class Holdings {
  total = 0;
  readonly #projects = new Map<string, number>();
  readonly #addresses = new Map<string, number>();

  constructor(readonly shares: Shares) {}

  change({ project, address }: Tenant, by: number): void {
    this.total += by;
    add(this.#projects, project, by);
    if (address !== '') add(this.#addresses, address, by);
  }

  ofProject({ project }: Tenant): number {
    return this.#projects.get(project) ?? 0;
  }

  ofAddress({ address }: Tenant): number {
    return this.#addresses.get(address) ?? 0;
  }

  full(tenant: Tenant, amount: number): FullShare | null {
    const { all, project = Infinity, address = Infinity, lendsToAddress, reserve } = this.shares;
    const most = reserve && tenant.project !== reserve.project ? all - reserve.amount : all;
    if (this.total + amount > most) return { scope: 'all', limit: most };
    const ofProject = this.ofProject(tenant) + amount;
    if (ofProject > project) return { scope: 'project', limit: project };
    if (tenant.address === '' || this.ofAddress(tenant) + amount <= address) return null;
    const leavesRoom = lendsToAddress && this.total + amount <= all / 2 && ofProject <= project / 2;
    return leavesRoom ? null : { scope: 'address', limit: address };
  }
}

/** Those who wait: projects take turns, and in each of them its addresses, each in its own order. */
export class FairLines<T extends { readonly tenant: Tenant }> {
  size = 0;
  readonly #projects = new Map<string, Map<string, Set<T>>>();

  add(entry: T): void {
    const { project, address } = entry.tenant;
    const ofProject = this.#projects.get(project) ?? new Map<string, Set<T>>();
    const line = ofProject.get(address) ?? new Set();
    this.#projects.set(project, ofProject.set(address, line.add(entry)));
    this.size++;
  }

  hasOf({ project, address }: Tenant): boolean {
    return this.#projects.get(project)?.has(address) ?? false;
  }

  /** The first of each tenant, in the order of their turns. */
  *heads(): Iterable<T> {
    for (const ofProject of this.#projects.values()) {
      for (const line of ofProject.values()) yield line.values().next().value!;
    }
  }

  /** Takes one out of its line; one that has had its turn lets others pass before the next of its tenant. */
  delete(entry: T, hadTurn: boolean): void {
    const { project, address } = entry.tenant;
    const ofProject = this.#projects.get(project)!;
    const line = ofProject.get(address)!;
    line.delete(entry);
    this.size--;
    if (hadTurn || line.size === 0) ofProject.delete(address);
    if (line.size > 0) ofProject.set(address, line);
    if (hadTurn || ofProject.size === 0) this.#projects.delete(project);
    if (ofProject.size > 0) this.#projects.set(project, ofProject);
  }
}

interface Waiting {
  readonly tenant: Tenant;
  readonly amount: number;
  readonly start: () => void;
}

/**
 * A limit on one unit, with a fair share for each tenant. Of those who wait and have room in their share
 * the next is the tenant whose project holds least, then whose address does, then whose last turn is longest ago.
 */
export class FairLimiter {
  readonly #held: Holdings;
  readonly #queued: Holdings;
  readonly #lines = new FairLines<Waiting>();

  constructor(private readonly options: LimiterOptions) {
    this.#held = new Holdings(options.shares);
    this.#queued = new Holdings(options.waiting ?? { all: Infinity });
  }

  get held(): number {
    return this.#held.total;
  }

  get waiting(): number {
    return this.#lines.size;
  }

  heldBy(tenant: Tenant): { project: number; address: number } {
    return { project: this.#held.ofProject(tenant), address: this.#held.ofAddress(tenant) };
  }

  /** Whose share is full when `amount` does not fit; null when it does. */
  full(tenant: Tenant, amount: number): FullShare | null {
    return this.#held.full(tenant, amount);
  }

  /** `amount`, but no more than the tenant may ever hold: what asks for more counts as one that takes all of that. */
  within({ address }: Tenant, amount: number): number {
    const { shares } = this.options;
    return Math.min(
      amount,
      shares.all,
      shares.project ?? Infinity,
      address === '' ? Infinity : (shares.address ?? Infinity),
    );
  }

  /** Takes `amount` at once; false when it does not fit, or when others of the tenant have waited for longer. */
  tryTake(tenant: Tenant, amount: number): boolean {
    if (this.#lines.hasOf(tenant) || this.#held.full(tenant, amount)) return false;
    this.#held.change(tenant, amount);
    return true;
  }

  /** Takes `amount` when it fits and is the tenant's turn. Refused when too many wait, or for too long. */
  async take(tenant: Tenant, amount: number, signal?: AbortSignal): Promise<void> {
    if (signal?.aborted) throw abandoned();
    if (this.tryTake(tenant, amount)) return;
    const full = this.#queued.full(tenant, 1);
    if (full) throw this.#refusal(full);
    await this.#wait(tenant, amount, signal);
  }

  #wait(tenant: Tenant, amount: number, signal?: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      const leave = (hadTurn: boolean): void => {
        clearTimeout(timer);
        signal?.removeEventListener('abort', goAway);
        this.#lines.delete(entry, hadTurn);
        this.#queued.change(tenant, -1);
      };
      const giveUp = (error: Error): void => {
        leave(false);
        reject(error);
        // Others of the tenant may fit where this one did not.
        this.#startNext();
      };
      const goAway = (): void => giveUp(abandoned());
      const start = (): void => {
        leave(true);
        this.#held.change(tenant, amount);
        resolve();
      };
      const entry: Waiting = { tenant, amount, start };
      const { maxWaitMs, shares } = this.options;
      const tooLate = (): void =>
        giveUp(this.#refusal(this.#held.full(tenant, amount) ?? { scope: 'all', limit: shares.all }));
      const timer = maxWaitMs === undefined ? undefined : setTimeout(tooLate, maxWaitMs);
      signal?.addEventListener('abort', goAway, { once: true });
      this.#lines.add(entry);
      this.#queued.change(tenant, 1);
    });
  }

  /** Takes `amount` whether or not it fits: others then wait the longer. */
  add(tenant: Tenant, amount: number): void {
    this.#held.change(tenant, amount);
  }

  giveBack(tenant: Tenant, amount: number): void {
    this.#held.change(tenant, -amount);
    this.#startNext();
  }

  /** Runs `work` when it is the tenant's turn. Fails as `take`. */
  async run<T>(tenant: Tenant, work: () => Promise<T>, signal?: AbortSignal): Promise<T> {
    await this.take(tenant, 1, signal);
    try {
      return await work();
    } finally {
      this.giveBack(tenant, 1);
    }
  }

  /**
   * Waits until the tenant may hold something; null when it may now. For work of which only the end shows how much it
   * holds, which is counted by `add`.
   */
  room(tenant: Tenant): Promise<void> | null {
    if (!this.#lines.hasOf(tenant) && !this.#held.full(tenant, 1)) return null;
    return this.run(tenant, () => Promise.resolve());
  }

  #startNext(): void {
    for (let next = this.#findNext(); next; next = this.#findNext()) next.start();
  }

  #findNext(): Waiting | null {
    if (this.#lines.size === 0) return null;
    let next: Waiting | null = null;
    for (const entry of this.#lines.heads()) {
      if (this.#held.full(entry.tenant, entry.amount)) continue;
      if (!next || this.#holdsLess(entry.tenant, next.tenant)) next = entry;
    }
    return next;
  }

  #holdsLess(one: Tenant, other: Tenant): boolean {
    const projects = this.#held.ofProject(one) - this.#held.ofProject(other);
    return projects < 0 || (projects === 0 && this.#held.ofAddress(one) < this.#held.ofAddress(other));
  }

  #refusal(full: FullShare): Error {
    const { refuse = busy } = this.options;
    return refuse(full, this.#lines.size);
  }
}

const busy = (): Error =>
  unavailable('BUSY', 'The server is busy with expensive requests. Try again in a moment', { retryAfterSeconds: 1 });

function add(counts: Map<string, number>, key: string, by: number): void {
  const now = (counts.get(key) ?? 0) + by;
  if (now > 0) counts.set(key, now);
  else counts.delete(key);
}
