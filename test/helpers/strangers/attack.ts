import { setTimeout as wait } from 'node:timers/promises';
import type { Random } from '../random.js';
import { nextAddress, send, sendUpTo, type Identity, type Shot, type Stage } from './send.js';
import { listShots, type GrownShot } from './shots.js';
import { QUOTA, type AttackedProject, type Target } from './target.js';

const LOOK_MS = 20;
/** Requests that store, of which the one that keeps most is repeated. */
const KEPT_TRIED = 8;
const MAX_STALL_MS = 100;
const MAX_GROWTH_BYTES = 64 * 1024 ** 2;
const MAX_NEIGHBOUR_MS = 1_000;
/** The p99 of another project's small reads, beside that of a service with nothing to do. */
const MAX_SLOWDOWN = 10;
/** A machine that others use too answers nobody sooner. */
const LEAST_P99_MS = 50;
/** Mails to a person within a day, of all kinds together. */
const MAX_MAILS = 10;

/** What a volley did to the service, and to the others. */
interface Damage {
  name: string;
  /** The addresses that it came from. */
  from: number;
  stallMs: number;
  grownBytes: number;
  storedBytes: number;
  mails: number;
  statuses: Record<string, number>;
  /** How long small reads of another project took; those that were refused count as endless. */
  neighbourMs: number[];
}

export interface AttackOptions {
  ms: number;
  /** Requests that a round tries one by one. */
  tried?: number;
  /** Those that cost most are sent many at once. */
  winners?: number;
  /** How long connections are kept, and the service is looked at with nothing to do. */
  heldMs?: number;
  /** Looks at times by the clock too, which mean something on a machine that does nothing else. */
  isTimed?: boolean;
  tell?: (line: string) => void;
}

export interface Findings {
  /** What was beyond the bounds of every stranger. */
  problems: string[];
  /** The dearest requests of each route, in milliseconds of the main thread for each kilobyte sent. */
  costs: Map<string, number>;
  volleys: number;
  worst: Omit<Damage, 'name' | 'from' | 'statuses' | 'neighbourMs'> & { neighbourMs: number; p99: number };
}

/**
 * Rounds of looking for the requests that cost most for their length, and of sending the dearest at once, whole, cut
 * off and unread, until the time is over; one round at least.
 */
export async function attackFor(
  target: Target,
  random: Random,
  { ms, tried = 60, winners = 4, heldMs = 1_500, isTimed = false, tell = () => undefined }: AttackOptions,
): Promise<Findings> {
  const end = Date.now() + ms;
  const shots = listShots(target.roomy);
  const ofSmall = listShots(target.small);
  const storing = ofSmall.filter(({ stores, headers }) => stores && headers['x-api-key'] !== undefined);
  const withBody = shots.filter(({ hasBody }) => hasBody);
  const streams = shots.filter(({ isStream, headers }) => isStream && headers['x-api-key'] !== undefined);
  target.takeReads();
  await wait(heldMs);
  const idle = percentile(target.takeReads(), 0.99);
  tell(`reads of another project while nothing else is done: p99 ${idle.toFixed(1)} ms`);
  const costs = new Map<string, number>();
  const problems: string[] = [];
  const worst = { stallMs: 0, grownBytes: 0, storedBytes: 0, mails: 0, neighbourMs: 0, p99: 0 };
  let volleys = 0;
  const note = (damage: Damage): void => {
    const { name, stallMs, grownBytes, storedBytes, mails, statuses, neighbourMs } = damage;
    volleys++;
    const slowest = Math.max(0, ...neighbourMs);
    const p99 = percentile(neighbourMs, 0.99);
    worst.stallMs = Math.max(worst.stallMs, stallMs);
    worst.grownBytes = Math.max(worst.grownBytes, grownBytes / damage.from);
    worst.storedBytes = Math.max(worst.storedBytes, storedBytes);
    worst.mails = Math.max(worst.mails, mails);
    worst.neighbourMs = Math.max(worst.neighbourMs, slowest);
    worst.p99 = Math.max(worst.p99, p99);
    tell(
      `${name}: stall ${stallMs} ms, memory ${megabytes(grownBytes)}, stored ${megabytes(storedBytes)}, mails ${mails}, others ${p99.toFixed(0)} ms, ${JSON.stringify(statuses)}`,
    );
    const slowdown = isTimed ? { slowest, p99, most: Math.max(LEAST_P99_MS, idle * MAX_SLOWDOWN) } : null;
    problems.push(...judge(damage, slowdown).map((problem) => `${name}: ${problem}`));
    if (target.service.process.exitCode !== null || target.service.process.signalCode !== null) throw new Ended(name);
  };
  const attackOnce = async (): Promise<void> => {
    const found = await climb(target, random, shots, withBody, tried, winners);
    for (const { shot, ms: cost, length } of found) {
      const perKb = cost / Math.max(1, length / 1024);
      const route = shot.family.split(' ').slice(0, 2).join(' ');
      costs.set(route, Math.max(costs.get(route) ?? 0, perKb));
    }
    for (const { shot } of found.slice(0, winners)) {
      note(await fire(target, shot, { times: 50, from: 1 }));
      note(await fire(target, shot, { times: 50, from: 20 }));
      note(await hold(target, shot, { times: 90, from: 1, stage: 'unread', heldMs }));
    }
    note(await hold(target, random.pick(shots), { times: 600, from: 1, stage: 'headers', heldMs }));
    note(await hold(target, pickOpen(random, withBody), { times: 600, from: 1, stage: 'body', heldMs }));
    note(await hold(target, pickOpen(random, withBody), { times: 600, from: 20, stage: 'body', heldMs }));
    for (let at = 0; at < winners / 2; at++) {
      note(await hold(target, random.pick(streams), { times: 95, from: 1, stage: 'unread', heldMs }));
      note(await keepStoring(target, await findKept(target, random, storing), 95));
    }
  };
  try {
    do await attackOnce();
    while (Date.now() < end);
  } catch (error) {
    if (!(error instanceof Ended)) throw error;
    problems.push(`${error.message}: the process has ended`);
  }
  return { problems, costs, volleys, worst };
}

class Ended extends Error {}

const shotOf = (grown: GrownShot): Shot => ({ ...grown, body: grown.body() });
const lengthOf = ({ path, body, headers }: Shot): number => path.length + body.length + JSON.stringify(headers).length;
const megabytes = (bytes: number): string => `${(bytes / 1024 ** 2).toFixed(1)} MB`;

/** How often a route has refused a caller before it looked at what was sent; one that did so twice is left alone. */
const refusals = new Map<string, number>();
const REFUSED: ReadonlySet<number> = new Set([401, 403, 404]);

function noteAnswer(shot: GrownShot, status: number): void {
  const { route } = shot;
  refusals.set(route, REFUSED.has(status) ? (refusals.get(route) ?? 0) + 1 : -Infinity);
}

const grouped = new WeakMap<readonly GrownShot[], Map<string, GrownShot[]>>();

function routesOf(shots: readonly GrownShot[]): Map<string, GrownShot[]> {
  let byRoute = grouped.get(shots);
  if (byRoute) return byRoute;
  grouped.set(shots, (byRoute = new Map<string, GrownShot[]>()));
  for (const shot of shots) {
    const ofRoute = byRoute.get(shot.route);
    if (ofRoute) ofRoute.push(shot);
    else byRoute.set(shot.route, [shot]);
  }
  return byRoute;
}

/** Of routes that are open to their caller, and of their operators, each is as likely; every other one is large. */
function pickOpen(random: Random, shots: readonly GrownShot[]): GrownShot {
  const byRoute = routesOf(shots);
  const routes = [...byRoute.keys()];
  const open = routes.filter((route) => (refusals.get(route) ?? 0) < 2);
  const ofRoute = byRoute.get(random.pick(open.length > 0 ? open : routes))!;
  const { family } = random.pick(ofRoute);
  const sizes = ofRoute.filter((each) => each.family === family);
  return random.chance(0.5) ? sizes.at(-1)! : random.pick(sizes);
}

/** Requests by what they cost, the dearest first: of those that cost most for their length every size is tried. */
async function climb(
  target: Target,
  random: Random,
  shots: readonly GrownShot[],
  withBody: readonly GrownShot[],
  tried: number,
  winners: number,
): Promise<Cost[]> {
  const found: Cost[] = [];
  for (let at = 0; at < tried; at++) {
    found.push(await costOf(target, pickOpen(random, random.chance(0.6) ? withBody : shots)));
  }
  const perByte = [...found].sort((a, b) => b.ms / (b.length + 2_000) - a.ms / (a.length + 2_000));
  for (const { shot } of perByte.slice(0, winners)) {
    const others = routesOf(shots).get(shot.route)!;
    for (const other of others.filter(({ family, size }) => family === shot.family && size !== shot.size)) {
      found.push(await costOf(target, other));
    }
  }
  // One of each route: what one lets through says nothing about another.
  const dearest = new Map<string, Cost>();
  for (const cost of found.sort((a, b) => b.ms - a.ms)) {
    const { route } = cost.shot;
    if (!dearest.has(route)) dearest.set(route, cost);
  }
  return [...dearest.values()];
}

/** A request with the milliseconds of the main thread that it takes by itself. */
interface Cost {
  shot: GrownShot;
  ms: number;
  length: number;
}

/** A user who sends few enough requests to be refused none; then another one. */
const lately = new WeakMap<AttackedProject, { identity: Identity; uses: number }>();
const MOST_OF_USER = 80;

async function someUser(project: AttackedProject): Promise<Identity> {
  const known = lately.get(project);
  if (known && known.uses++ < MOST_OF_USER) return known.identity;
  const identity = await project.join();
  lately.set(project, { identity, uses: 1 });
  return identity;
}

async function costOf(target: Target, shot: GrownShot): Promise<Cost> {
  const sent = shotOf(shot);
  const identity = await someUser(target.roomy);
  const before = target.mainThreadMs();
  noteAnswer(shot, (await send(target.service.ready.url, sent, nextAddress(), identity)).status);
  return { shot, ms: target.mainThreadMs() - before, length: lengthOf(sent) };
}

/** Sends a request so many times at once. */
function fire(target: Target, shot: GrownShot, { times, from }: { times: number; from: number }): Promise<Damage> {
  const { url } = target.service.ready;
  return watch(target, `${times} x ${shot.family} ${shot.size} from ${from}`, from, async (sources) => {
    const sent = shotOf(shot);
    const who = await target.roomy.join();
    const shots = Array.from({ length: times }, (_, at) => send(url, sent, sources[at % from]!, who));
    const answers = await Promise.all(shots);
    return answers.map(({ status }) => status);
  });
}

/** Keeps connections that stop at a stage while it looks what others get. */
function hold(
  target: Target,
  shot: GrownShot,
  { times, from, stage, heldMs }: { times: number; from: number; stage: Stage; heldMs: number },
): Promise<Damage> {
  const { url } = target.service.ready;
  return watch(target, `${times} ${stage} of ${shot.family} ${shot.size} from ${from}`, from, async (sources) => {
    const sent = shotOf(shot);
    const who = await target.roomy.join();
    const sockets = Array.from({ length: times }, (_, at) => sendUpTo(url, sent, sources[at % from]!, stage, who));
    await wait(heldMs);
    for (const socket of sockets) socket.destroy();
    return [];
  });
}

/** Stores, under another Idempotency-Key each time, and removes for good what can be removed. */
async function keepStoring(target: Target, shot: GrownShot, times: number): Promise<Damage> {
  const { url } = target.service.ready;
  const who = await target.small.join().catch(() => someUser(target.small));
  const keyed = { ...shotOf(shot), headers: { ...shot.headers, 'idempotency-key': 'key{n}' } };
  return watch(target, `${times} kept of ${shot.family} ${shot.size}`, 1, async ([source]) => {
    const statuses: number[] = [];
    for (let at = 0; at < times; at++) {
      const { status, text } = await send(url, keyed, source!, who);
      statuses.push(status);
      const id = shot.path.startsWith('/api/data/') ? /"_id":"([0-9a-f]{24})"/.exec(text)?.[1] : undefined;
      if (id === undefined || status !== 201) continue;
      const removal = { method: 'DELETE', path: `${shot.path}/${id}?permanent=true`, headers: shot.headers, body: '' };
      await send(url, removal, nextAddress(), who);
    }
    return statuses;
  });
}

/** Of some requests that store, the one after which most is kept. */
async function findKept(target: Target, random: Random, storing: readonly GrownShot[]): Promise<GrownShot> {
  let best = { shot: random.pick(storing), grown: -1 };
  let { stored } = await target.measure();
  for (let at = 0; at < KEPT_TRIED; at++) {
    const shot = pickOpen(random, storing);
    const { status } = await send(target.service.ready.url, shotOf(shot), nextAddress(), await someUser(target.small));
    noteAnswer(shot, status);
    const now = (await target.measure()).stored;
    if (now - stored > best.grown) best = { shot, grown: now - stored };
    stored = now;
  }
  return best.shot;
}

function percentile(values: readonly number[], part: number): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * part))] ?? 0;
}

async function watch(
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
  const neighbourMs = target.takeReads();
  const after = await target.measure();
  return {
    name,
    from,
    stallMs: Math.max(0, ...target.stalls().slice(linesBefore)),
    grownBytes,
    storedBytes: after.stored,
    mails: after.mails,
    statuses,
    neighbourMs,
  };
}

/** What is wrong with a damage by the bounds of every stranger; empty when nothing is. */
function judge(
  { stallMs, grownBytes, storedBytes, mails, neighbourMs, statuses, from }: Damage,
  slowdown: { slowest: number; p99: number; most: number } | null,
): string[] {
  const problems: string[] = [];
  if (stallMs >= MAX_STALL_MS) problems.push(`the event loop was kept for ${stallMs} ms of processor time`);
  if (grownBytes > MAX_GROWTH_BYTES * from) problems.push(`memory grew by ${megabytes(grownBytes)}`);
  if (storedBytes > QUOTA * 1.1) problems.push(`${megabytes(storedBytes)} are stored of ${megabytes(QUOTA)}`);
  if (mails > MAX_MAILS) problems.push(`one address got ${mails} mails`);
  const refused = neighbourMs.filter((ms) => ms === Infinity).length;
  if (refused > 0) problems.push(`${refused} of ${neighbourMs.length} reads of another project were refused`);
  if (statuses['500']) problems.push('it failed with 500');
  if (slowdown && slowdown.slowest > MAX_NEIGHBOUR_MS) {
    problems.push(`a read of another project took ${slowdown.slowest.toFixed(0)} ms`);
  }
  if (slowdown && slowdown.p99 > slowdown.most) problems.push(`reads of others: p99 ${slowdown.p99.toFixed(0)} ms`);
  return problems;
}
