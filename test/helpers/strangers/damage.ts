import { setTimeout as wait } from 'node:timers/promises';
import { nextAddress } from './send.js';
import { QUOTA, type Read, type Target } from './target.js';

const LOOK_MS = 20;
const MAX_STALL_MS = 100;
/** For each address that a volley comes from. */
const MAX_GROWTH_BYTES = 64 * 1024 ** 2;
const MAX_NEIGHBOUR_MS = 1_000;
/** The p99 of another project's small reads, beside that of a service with nothing to do. */
const MAX_SLOWDOWN = 10;
/** A machine that others use too answers nobody sooner. */
const LEAST_P99_MS = 50;
/** Mails to a person within a day, of all kinds together. */
const MAX_MAILS = 10;

/** What a volley did to the service, and to the others. */
export interface Damage {
  name: string;
  /** The addresses that it came from. */
  from: number;
  stallMs: number;
  /** Memory of the service before, and how much it has grown at most since. */
  memory: number;
  grownBytes: number;
  storedBytes: number;
  /** Of these, what was not there before. */
  addedBytes: number;
  /** To the address that got most, and how many more these are than before. */
  mails: number;
  addedMails: number;
  statuses: Record<string, number>;
  /** Reads of an honest user of another project. */
  reads: Read[];
}

/** How often a volley is measured before what one measure shows counts. */
const MEASURES = 5;

export const megabytes = (bytes: number): string => `${(bytes / 1024 ** 2).toFixed(1)} MB`;

export function percentile(values: readonly number[], part: number): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * part))] ?? 0;
}

/** Measures what `act`, which answers the statuses it got, does to the service. */
export async function watch(
  target: Target,
  name: string,
  from: number,
  act: (sources: readonly string[]) => Promise<number[]>,
): Promise<Damage> {
  const linesBefore = target.stalls().length;
  const before = await target.measure();
  target.takeReads();
  let isOver = false;
  let grownBytes = 0;
  const looking = (async () => {
    do {
      grownBytes = Math.max(grownBytes, target.measureMemory() - before.memory);
      await wait(LOOK_MS);
    } while (!isOver);
  })();
  const statuses: Record<string, number> = {};
  for (const status of await act(Array.from({ length: from }, nextAddress))) {
    statuses[status] = (statuses[status] ?? 0) + 1;
  }
  isOver = true;
  await looking;
  const reads = target.takeReads();
  const { stored, mails } = await target.measure();
  const stallMs = Math.max(0, ...target.stalls().slice(linesBefore));
  const kept = { storedBytes: stored, addedBytes: stored - before.stored, mails, addedMails: mails - before.mails };
  return { name, from, stallMs, memory: before.memory, grownBytes, ...kept, statuses, reads };
}

/**
 * What a volley does by itself. Processor time and memory also hold what had to be compiled or collected and what other
 * work of the machine costs, all of which only adds: a volley beyond a bound is sent again, and of its measures the
 * least counts; of what is counted exactly, the most.
 */
export async function measureLeast(isWithin: (damage: Damage) => boolean, act: () => Promise<Damage>): Promise<Damage> {
  let least = await act();
  for (let measured = 1; measured < MEASURES && !isWithin(least); measured++) least = leastOf(least, await act());
  return least;
}

function leastOf(one: Damage, other: Damage): Damage {
  const { memory } = one;
  const slowest = ({ reads }: Damage): number => Math.max(0, ...reads.map(({ cpuMs }) => cpuMs));
  const isCalmer =
    refusedOf(one) < refusedOf(other) || (refusedOf(one) === refusedOf(other) && slowest(one) < slowest(other));
  return {
    ...other,
    memory,
    stallMs: Math.min(one.stallMs, other.stallMs),
    grownBytes: Math.min(one.grownBytes, other.memory + other.grownBytes - memory),
    addedBytes: one.addedBytes + other.addedBytes,
    addedMails: one.addedMails + other.addedMails,
    statuses: { ...one.statuses, ...other.statuses },
    reads: isCalmer ? one.reads : other.reads,
  };
}

const refusedOf = ({ reads }: Damage): number =>
  reads.filter(({ status }) => status !== 200 && status !== 'waiting').length;

/**
 * What is wrong with a damage by the bounds of every stranger; empty when nothing is. `idleP99` is that of reads of a
 * service with nothing to do, null where times by the clock mean nothing; then only processor time is judged.
 */
export function judge(damage: Damage, idleP99: number | null): string[] {
  const { stallMs, grownBytes, storedBytes, addedBytes, mails, addedMails, reads, statuses, from } = damage;
  const problems: string[] = [];
  if (stallMs >= MAX_STALL_MS) problems.push(`the event loop was kept for ${stallMs} ms of processor time`);
  if (grownBytes > MAX_GROWTH_BYTES * from) problems.push(`memory grew by ${megabytes(grownBytes)}`);
  if (storedBytes > QUOTA * 1.1 && addedBytes > 1024)
    problems.push(`${megabytes(storedBytes)} are stored of ${megabytes(QUOTA)}`);
  if (mails > MAX_MAILS && addedMails > 0) problems.push(`one address got ${mails} mails`);
  const refused = refusedOf(damage);
  if (refused > 0) problems.push(`${refused} of ${reads.length} reads of another project were refused`);
  const spent = Math.max(0, ...reads.map(({ cpuMs }) => cpuMs));
  if (spent > MAX_NEIGHBOUR_MS) {
    problems.push(`the service worked ${spent.toFixed(0)} ms for others while a read of another project waited`);
  }
  if (statuses['500']) problems.push('it failed with 500');
  if (idleP99 === null) return problems;
  const times = reads.map(({ ms }) => ms);
  const slowest = Math.max(0, ...times);
  if (slowest > MAX_NEIGHBOUR_MS) problems.push(`a read of another project took ${slowest.toFixed(0)} ms`);
  const p99 = percentile(times, 0.99);
  if (p99 > Math.max(LEAST_P99_MS, idleP99 * MAX_SLOWDOWN)) problems.push(`reads of others: p99 ${p99.toFixed(0)} ms`);
  return problems;
}
