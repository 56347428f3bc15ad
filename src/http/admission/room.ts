import type { ServerResponse } from 'node:http';
import { abandoned, unavailable } from '../../errors.js';
import type { Tenant } from '../../turns.js';
import { OPERATORS_TENANT } from './tenants.js';

/** Who was refused: an address or a project that has its share, or anybody. */
export type RefusedScope = 'address' | 'project' | 'all';

/** A refusal, for the log and the metrics. */
export interface RoomRefusal {
  stage: string;
  unit: string;
  scope: RefusedScope;
  limit: number;
}

export interface RoomOptions {
  /** Which part of a request's way it bounds, and in what. */
  stage: string;
  unit: string;
  most: number;
  /** The time that somebody waits for room. */
  maxWaitMs: number;
  /** The number that may wait. */
  maxWaiting: number;
  onRefusal?: (refusal: RoomRefusal) => void;
}

const RESERVED_PART = 20;

/** What tenants hold of a whole. */
export class Shares {
  total = 0;
  readonly #byProject = new Map<string, number>();
  readonly #byAddress = new Map<string, number>();

  constructor(readonly most: number) {}

  /**
   * Who has to leave something for others before `amount` fits; null when it fits. A project has half at most. An
   * address has a tenth; more only while half of all, and of its project's share, stays free for others. The last
   * twentieth is the operators'.
   */
  refused({ project, address }: Tenant, amount: number): { scope: RefusedScope; limit: number } | null {
    const half = Math.max(1, this.most / 2);
    const tenth = Math.max(1, this.most / 10);
    const most = project === OPERATORS_TENANT ? this.most : this.most - Math.floor(this.most / RESERVED_PART);
    if (this.total + amount > most) return { scope: 'all', limit: most };
    if (this.ofProject(project) + amount > half) return { scope: 'project', limit: half };
    if (this.ofAddress(address) + amount <= tenth) return null;
    const leavesRoom = this.total + amount <= half && this.ofProject(project) + amount <= half / 2;
    return leavesRoom ? null : { scope: 'address', limit: tenth };
  }

  change({ project, address }: Tenant, by: number): void {
    this.total += by;
    add(this.#byProject, project, by);
    add(this.#byAddress, address, by);
  }

  ofProject(project: string): number {
    return this.#byProject.get(project) ?? 0;
  }

  ofAddress(address: string): number {
    return this.#byAddress.get(address) ?? 0;
  }
}

interface Waiting {
  tenant: Tenant;
  amount: number;
  start: () => void;
}

/** A bound on what all requests hold of one unit at one stage of their way, with everybody's share of it. */
export class Room {
  readonly #held: Shares;
  readonly #lines: Shares;
  readonly #waiting = new Set<Waiting>();

  constructor(private readonly options: RoomOptions) {
    this.#held = new Shares(options.most);
    this.#lines = new Shares(options.maxWaiting);
  }

  get held(): number {
    return this.#held.total;
  }

  get waiting(): number {
    return this.#waiting.size;
  }

  /**
   * Takes `amount`, at once (null) or when there is room and it is the tenant's turn: those who hold least come first.
   * 503 OVERLOADED when too many wait, or for too long; ends when the client leaves.
   */
  enter(tenant: Tenant, amount: number, res: ServerResponse): Promise<void> | null {
    const wanted = this.#within(amount);
    if (this.#waiting.size === 0 && !this.#held.refused(tenant, wanted)) {
      this.#held.change(tenant, wanted);
      return null;
    }
    return this.#wait(tenant, wanted, res);
  }

  /** Takes `amount` whether or not there is room. */
  add(tenant: Tenant, amount: number): void {
    this.#held.change(tenant, this.#within(amount));
  }

  /** Gives back what `enter` or `add` took. */
  leave(tenant: Tenant, amount: number): void {
    this.#held.change(tenant, -this.#within(amount));
    if (this.#waiting.size > 0) this.#startNext();
  }

  /** One that asks for more than any share counts as one that takes a whole share. */
  #within(amount: number): number {
    return Math.min(amount, Math.max(1, this.options.most / 10));
  }

  #wait(tenant: Tenant, amount: number, res: ServerResponse): Promise<void> {
    const full = this.#lines.refused(tenant, 1);
    if (full) throw this.#refusal(full);
    return new Promise((resolve, reject) => {
      const leaveLine = (): void => {
        clearTimeout(timer);
        res.off('close', goAway);
        this.#waiting.delete(entry);
        this.#lines.change(tenant, -1);
      };
      const start = (): void => {
        leaveLine();
        this.#held.change(tenant, amount);
        resolve();
      };
      const entry: Waiting = { tenant, amount, start };
      const goAway = (): void => {
        leaveLine();
        reject(abandoned());
      };
      const timer = setTimeout(() => {
        leaveLine();
        reject(this.#refusal(this.#held.refused(tenant, amount) ?? { scope: 'all', limit: this.options.most }));
      }, this.options.maxWaitMs);
      res.on('close', goAway);
      this.#waiting.add(entry);
      this.#lines.change(tenant, 1);
      this.#startNext();
    });
  }

  #startNext(): void {
    for (let next = this.#findNext(); next; next = this.#findNext()) next.start();
  }

  #findNext(): Waiting | null {
    let next: Waiting | null = null;
    for (const entry of this.#waiting) {
      if (this.#held.refused(entry.tenant, entry.amount)) continue;
      if (!next || this.#holdsLess(entry.tenant, next.tenant)) next = entry;
    }
    return next;
  }

  #holdsLess(one: Tenant, other: Tenant): boolean {
    const projects = this.#held.ofProject(one.project) - this.#held.ofProject(other.project);
    return projects < 0 || (projects === 0 && this.#held.ofAddress(one.address) < this.#held.ofAddress(other.address));
  }

  #refusal(who: { scope: RefusedScope; limit: number }): Error {
    const { stage, unit, onRefusal } = this.options;
    onRefusal?.({ stage, unit, ...who });
    return unavailable('OVERLOADED', TEXTS[who.scope], { retryAfterSeconds: 1 });
  }
}

const TEXTS: Readonly<Record<RefusedScope, string>> = {
  all: 'The server has too much to do just now: try again in a moment',
  project: 'The project has too many requests under way: try again in a moment',
  address: 'Your address has too many requests under way: try again in a moment',
};

function add(counts: Map<string, number>, key: string, by: number): void {
  const now = (counts.get(key) ?? 0) + by;
  if (now === 0) counts.delete(key);
  else counts.set(key, now);
}
