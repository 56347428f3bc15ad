import { unavailable } from './errors.js';
import { FairLines, type Tenant } from './fair-limiter.js';

/** The service itself, whose work is never refused. */
export const OURS: Tenant = { project: '', address: '' };

/** Networks of clients, by the signal that ends what is done for them. */
const addresses = new WeakMap<AbortSignal, string>();

/** From now on, work that `signal` ends is done for a client at this network address. */
export function setAddress(signal: AbortSignal, address: string): void {
  addresses.set(signal, address);
}

/** The network address of the client that work is done for; empty for that of the service itself. */
export function addressOf(signal: AbortSignal | undefined): string {
  return (signal && addresses.get(signal)) ?? '';
}

/** Work that is begun in one turn of the event loop before others get theirs, in milliseconds. */
const TURN_MS = 5;
/** Work of less begins at once while a turn has room for it. */
const SMALL_MS = 0.2;
/** The longest wait. */
const MAX_WAIT_MS = 10_000;

interface Waiting {
  tenant: Tenant;
  ms: number;
  since: number;
  begin: (refusal?: Error) => void;
}

const lines = new FairLines<Waiting>();
/** What this turn of the event loop has begun, in estimated milliseconds. */
let spent = 0;
let isArmed = false;
/** The one piece of work that the last turn began, if it was one. */
let lone: { kind: string; ms: number; began: number } | null = null;

/** What `turn` estimated, and how long the loop was then kept. */
export type TurnObserver = (kind: string, estimatedMs: number, realMs: number) => void;
let observer: TurnObserver | null = null;

/** Sees each piece of work that had a turn of the event loop to itself. */
export function observeTurns(observe: TurnObserver): void {
  observer = observe;
}

/** How many pieces of work wait for their turn. */
export function waitingForTurns(): number {
  return lines.size;
}

/**
 * To be awaited before work that keeps the event loop for about `ms`: a turn of the loop begins no more than 5 ms of
 * such work, or one piece that is longer, whatever number of requests ask. Projects take turns, and in each of them its
 * addresses. Nothing to await for small work that has room. 503 BUSY after ten seconds.
 */
export function turn(ms: number, tenant: Tenant = OURS, kind = ''): Promise<void> | void {
  if (ms < SMALL_MS && spent + ms <= TURN_MS) {
    spent += ms;
    arm();
    return;
  }
  return wait(ms, tenant, kind);
}

function wait(ms: number, tenant: Tenant, kind: string): Promise<void> {
  return new Promise((resolve, reject) => {
    const begin = (refusal?: Error): void => {
      if (refusal) return reject(refusal);
      lone = spent === 0 && kind !== '' ? { kind, ms, began: performance.now() } : null;
      spent += ms;
      resolve();
    };
    lines.add({ tenant, ms, begin, since: performance.now() });
    arm();
  });
}

function arm(): void {
  if (isArmed) return;
  isArmed = true;
  setImmediate(beginTurn);
}

function beginTurn(): void {
  isArmed = false;
  if (lone) observer?.(lone.kind, lone.ms, performance.now() - lone.began);
  lone = null;
  spent = 0;
  for (let [next] = lines.heads(); next && (spent === 0 || spent + next.ms <= TURN_MS); [next] = lines.heads()) {
    lines.delete(next, true);
    const isLate = next.tenant.address !== '' && performance.now() - next.since > MAX_WAIT_MS;
    next.begin(isLate ? tooLate() : undefined);
  }
  if (lines.size > 0 || spent > 0) arm();
}

const tooLate = (): Error => unavailable('BUSY', 'The server is busy. Try again in a moment', { retryAfterSeconds: 1 });

/** A turn of the event loop for one piece of work that takes milliseconds, always to be waited for. */
export function ownTurn(tenant: Tenant = OURS): Promise<void> {
  return wait(TURN_MS, tenant, '');
}

/**
 * A function to be awaited between two pieces of work: it waits for a turn of its own when this one has lasted `ms`,
 * less where a longer piece follows that cannot be parted.
 */
export function takeTurns(tenant: Tenant = OURS, ms = TURN_MS): () => Promise<void> | void {
  let started = performance.now();
  return () => {
    if (performance.now() - started < ms) return;
    return ownTurn(tenant).then(() => {
      started = performance.now();
    });
  };
}

/** The list with `work` done on each item in order, however long that takes in all. */
export async function mapInTurns<T, R>(
  items: readonly T[],
  work: (item: T, at: number) => R,
  tenant: Tenant = OURS,
): Promise<R[]> {
  const done: R[] = [];
  const pause = takeTurns(tenant);
  for (const [at, item] of items.entries()) {
    await pause();
    done.push(work(item, at));
  }
  return done;
}
