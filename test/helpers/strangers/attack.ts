import { setTimeout as wait } from 'node:timers/promises';
import type { Random } from '../random.js';
import { arriveInPieces, type Arrival, judgeArrival } from './arrive.js';
import {
  findAwaited,
  findDear,
  findKept,
  findMailing,
  pickEach,
  pickSome,
  pickStreams,
  readAll,
  shuffled,
} from './climb.js';
import { judge, measureLeast, megabytes, percentile, type Damage } from './damage.js';
import { AS_IT_IS, listShots } from './shots.js';
import { QUOTA, type Target } from './target.js';
import { fire, hold, keepStoring, repeat } from './volleys.js';

export interface AttackOptions {
  ms: number;
  /** Requests that a round tries one by one. */
  tried?: number;
  /** Tries also those of each operator, at routes that are drawn. */
  isEach?: boolean;
  /** Those that cost most are sent many at once. */
  winners?: number;
  /** How many of each of the dearest are sent at once, by one address, and of how many routes. */
  paired?: number;
  together?: number;
  /** How long connections are kept, and the service is looked at with nothing to do. */
  heldMs?: number;
  /** How often requests that keep something are repeated. */
  repeated?: number;
  /** Looks at times by the clock too, which mean something on a machine that does nothing else. */
  isTimed?: boolean;
  tell?: (line: string) => void;
}

export interface Findings {
  /** What was beyond the bounds of every stranger. */
  problems: string[];
  /** The dearest requests of each route, in milliseconds of all threads for each kilobyte sent. */
  costs: Map<string, number>;
  volleys: number;
  /** What came in pieces: of each name the measure that took most of the main thread. */
  arrivals: Map<string, Arrival>;
  worst: Record<'stallMs' | 'grownBytes' | 'storedBytes' | 'mails' | 'neighbourMs' | 'neighbourCpuMs' | 'p99', number>;
}

/**
 * Rounds of looking for the requests that cost most for their length, that keep places, memory, bytes or send mails,
 * and of sending the dearest at once, whole, cut off, byte by byte and unread, until the time is over; one round at
 * least.
 */
export async function attackFor(
  target: Target,
  random: Random,
  {
    ms,
    tried = 60,
    isEach = false,
    winners = 4,
    paired = 48,
    together = 2,
    heldMs = 1_500,
    repeated = 60,
    isTimed = false,
    tell = () => undefined,
  }: AttackOptions,
): Promise<Findings> {
  const end = Date.now() + ms;
  const shots = listShots(target.roomy);
  const quick = isEach ? shots.filter(({ operator }) => operator !== READS_FOR_LONG) : shots;
  const withBody = shots.filter(({ hasBody }) => hasBody);
  const streams = shots.filter(({ isStream, headers }) => isStream && headers['x-api-key'] !== undefined);
  target.takeReads();
  await wait(heldMs);
  const idle = percentile(timesOf(target), 0.99);
  tell(`reads of another project while nothing else is done: p99 ${idle.toFixed(1)} ms`);
  const costs = new Map<string, number>();
  const problems: string[] = [];
  const arrivals = new Map<string, Arrival>();
  const worst = { stallMs: 0, grownBytes: 0, storedBytes: 0, mails: 0, neighbourMs: 0, neighbourCpuMs: 0, p99: 0 };
  let volleys = 0;
  const note = async (act: () => Promise<Damage>): Promise<void> => {
    const judged = (damage: Damage): string[] => judge(damage, isTimed ? idle : null);
    const damage = await measureLeast((each) => judged(each).length === 0, act);
    const { name, stallMs, grownBytes, storedBytes, mails, statuses, reads } = damage;
    volleys++;
    const times = reads.map((read) => read.ms);
    const cpuMs = Math.max(0, ...reads.map((read) => read.cpuMs));
    const p99 = percentile(times, 0.99);
    const measured = { stallMs, storedBytes, mails, p99, neighbourCpuMs: cpuMs, neighbourMs: Math.max(0, ...times) };
    for (const [key, value] of Object.entries({ ...measured, grownBytes: grownBytes / damage.from })) {
      worst[key as keyof typeof worst] = Math.max(worst[key as keyof typeof worst], value);
    }
    tell(
      `${name}: stall ${stallMs} ms, memory ${megabytes(grownBytes)}, stored ${megabytes(storedBytes)}, mails ${mails}, others p99 ${p99.toFixed(0)} ms, at most ${cpuMs} ms of the service, ${JSON.stringify(statuses)}`,
    );
    for (const problem of judged(damage)) {
      tell(`  ${problem}`);
      problems.push(`${name}: ${problem}`);
    }
    requireRunning(name);
  };
  const requireRunning = (name: string): void => {
    if (target.service.process.exitCode !== null || target.service.process.signalCode !== null) throw new Ended(name);
  };
  const noteArrival = (arrival: Arrival): void => {
    const { name, status, events, ms, stallMs } = arrival;
    const form = name.split(' to ')[0]!;
    if (ms > (arrivals.get(form)?.ms ?? 0)) arrivals.set(form, arrival);
    const micros = (1000 * ms) / Math.max(1, events);
    tell(
      `${name}: ${events} events, ${ms.toFixed(1)} ms, ${micros.toFixed(2)} us each, stall ${stallMs} ms, ${status}`,
    );
    for (const problem of judgeArrival(arrival)) {
      tell(`  ${problem}`);
      problems.push(`${name}: ${problem}`);
    }
    requireRunning(name);
  };
  const from = (): number => random.pick([1, 20]);
  const attackOnce = async (): Promise<void> => {
    const each = isEach ? await pickEach(target, random, quick) : [];
    const found = await findDear(target, quick, { tried: [...each, ...pickSome(random, quick, tried)], winners });
    for (const { shot, allMs, length } of found) {
      const route = shot.route.split(' ').slice(0, 2).join(' ');
      costs.set(route, Math.max(costs.get(route) ?? 0, allMs / Math.max(1, length / 1024)));
    }
    const byMain = [...found].sort((a, b) => b.ms - a.ms).slice(0, winners);
    // Small ones come whole at once, and cost most together.
    const perByte = [...found].sort((a, b) => b.ms / (b.length + 2_000) - a.ms / (a.length + 2_000)).slice(0, winners);
    for (const { shot } of new Set([...byMain, ...perByte])) {
      const sources = from();
      await note(() => fire(target, [shot], { times: 50, from: sources }));
    }
    for (const { shot } of byMain)
      await note(() => hold(target, shot, { times: 90, from: 1, stage: 'unread', heldMs }));
    // Of all threads: the dearest together, about both collections.
    const dearest = found.slice(0, together).map(({ shot }) => shot);
    await note(() => fire(target, dearest, { times: paired, from: 1 }));
    for (const stream of pickStreams(random, streams)) {
      await note(() => hold(target, stream, { times: 95, from: 1, stage: 'unread', heldMs }));
    }
    const awaited = await findAwaited(target, random, withBody);
    for (const [caller, found] of Object.entries(awaited)) tell(`waits for the rest of ${found.length}, ${caller}`);
    for (const shot of [...awaited.known.slice(0, winners), ...awaited.unknown.slice(0, winners)]) {
      const sources = from();
      await note(() => hold(target, shot, { times: 600, from: sources, stage: 'body', heldMs }));
    }
    const dripped = random.pick(withBody);
    await note(() => hold(target, dripped, { times: 100, from: 1, stage: 'drip', heldMs }));
    const cut = random.pick(shots);
    await note(() => hold(target, cut, { times: 600, from: 1, stage: 'headers', heldMs }));
  };
  const mailing = withBody.filter(({ size, headers }) => size === 0 && headers['x-api-key'] !== undefined);
  const storeOnce = async (): Promise<void> => {
    // A full one takes nothing any more.
    await target.renewSmall();
    const known = listShots(target.small).filter(({ caller }) => caller !== 'nobody');
    const texts = known.filter(({ stores, operator }) => stores && operator === 'one text');
    const large = texts.filter(({ size, route }) => route === STORING && size > QUOTA / 3);
    // Some of them fit into the quota.
    const keeping = texts.filter(({ size }) => size > QUOTA / 20 && size < QUOTA / 3);
    const keepOnce = async (): Promise<void> => {
      for (const shot of shuffled(random, await findKept(target, random, keeping, 2 * winners))) {
        await note(() => repeat(target, target.small, shot, repeated));
      }
    };
    await readAll(
      target,
      target.small,
      known.filter(({ method, operator }) => method === 'GET' && operator === AS_IT_IS),
    );
    const removable = random.pick(large);
    await note(() => keepStoring(target, removable, repeated));
    await keepOnce();
    // What a full project takes still.
    await note(() => repeat(target, target.small, removable, 3));
    await keepOnce();
    const mailed = await findMailing(target, random, mailing, tried);
    await note(() => repeat(target, target.roomy, mailed, repeated));
  };
  try {
    do {
      await storeOnce();
      await target.withoutReads(() => arriveInPieces(target, random, shots, noteArrival));
      await attackOnce();
    } while (Date.now() < end);
  } catch (error) {
    if (!(error instanceof Ended)) throw error;
    problems.push(`${error.message}: the process has ended`);
  }
  return { problems, costs, volleys, arrivals, worst };
}

/** Keeps a reader thread for seconds, and nobody else. */
const READS_FOR_LONG = 'long ranges';

class Ended extends Error {}

const timesOf = (target: Target): number[] => target.takeReads().map(({ ms }) => ms);

/** What it stores can be removed again by who stored it. */
const STORING = 'POST /api/data/:collectionName user';
