import { setTimeout as wait } from 'node:timers/promises';
import type { Random } from '../random.js';
import { isAwaited, nextAddress, send } from './send.js';
import { AS_IT_IS, type GrownShot } from './shots.js';
import type { AttackedProject, Target } from './target.js';
import { shotOf, someUser } from './volleys.js';

const PROBED_AT_ONCE = 60;
const MAILED_MS = 100;
const LARGE_BODY = 40_000;
const LARGE_QUERY = 4_000;
/** What a request leaves that stores nothing large: a session, a line of a log. */
const KEPT_BYTES = 10_000;

/** A request with what it takes by itself: milliseconds of the main thread, and of all threads. */
export interface Cost {
  shot: GrownShot;
  ms: number;
  allMs: number;
  length: number;
}

/** How often a route has refused a caller before it looked at what was sent; one that did so twice is left alone. */
const refusals = new Map<string, number>();
const REFUSED: ReadonlySet<number> = new Set([401, 403, 404]);

function noteAnswer({ route }: GrownShot, status: number): void {
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

/** How many requests of routes that are open to their caller. */
export function pickSome(random: Random, shots: readonly GrownShot[], tried: number): GrownShot[] {
  const withBody = shots.filter(({ hasBody }) => hasBody);
  return Array.from({ length: tried }, () => pickOpen(random, random.chance(0.6) ? withBody : shots));
}

/**
 * Of each operator and each bound of bodies the large requests of one route that is open to a user: what the dearest of
 * them costs depends little on what was drawn.
 */
export async function pickEach(target: Target, random: Random, shots: readonly GrownShot[]): Promise<GrownShot[]> {
  const open = new Set<string>();
  for (const shot of shots.filter(({ operator, caller }) => operator === AS_IT_IS && caller === 'user')) {
    // A new user each time: some routes end the session.
    const { status } = await send(target.service.ready.url, shotOf(shot), nextAddress(), await target.roomy.join());
    if (!REFUSED.has(status)) open.add(shot.route);
  }
  const families = new Map<string, Set<string>>();
  const large = shots.filter(
    ({ route, size, hasBody }) => open.has(route) && size >= (hasBody ? LARGE_BODY : LARGE_QUERY),
  );
  for (const { operator, bodySize, family } of large) {
    const kind = `${operator} ${bodySize}`;
    families.set(kind, (families.get(kind) ?? new Set()).add(family));
  }
  const picked = new Set([...families.values()].map((each) => random.pick([...each])));
  return large.filter(({ family }) => picked.has(family));
}

/** Requests by what they cost, one of each route: of those that cost most for their length every size is tried. */
export async function findDear(
  target: Target,
  shots: readonly GrownShot[],
  { tried, winners }: { tried: readonly GrownShot[]; winners: number },
): Promise<Cost[]> {
  const found: Cost[] = [];
  for (const shot of tried) found.push(await costOf(target, shot));
  const perByte = ({ ms, allMs, length }: Cost): number => (ms + allMs) / (length + 2_000);
  const families = [...found].sort((a, b) => perByte(b) - perByte(a)).slice(0, winners);
  for (const { shot } of families) {
    const others = routesOf(shots).get(shot.route)!;
    for (const other of others.filter(({ family, size }) => family === shot.family && size !== shot.size)) {
      found.push(await costOf(target, other));
    }
  }
  // One of each route: what one lets through says nothing about another.
  const dearest = new Map<string, Cost>();
  for (const cost of found.sort((a, b) => b.allMs - a.allMs)) {
    if (!dearest.has(cost.shot.route)) dearest.set(cost.shot.route, cost);
  }
  return [...dearest.values()];
}

async function costOf(target: Target, shot: GrownShot): Promise<Cost> {
  const sent = shotOf(shot);
  const identity = await someUser(target.roomy);
  const before = target.spentMs();
  noteAnswer(shot, (await send(target.service.ready.url, sent, nextAddress(), identity)).status);
  const { main, all } = target.spentMs();
  const length = sent.path.length + sent.body.length + JSON.stringify(sent.headers).length;
  return { shot, ms: main - before.main, allMs: Math.max(0, all - before.all), length };
}

/** Requests whose rest the service waits for, by its caller: each keeps a place while it is unfinished. */
export async function findAwaited(
  target: Target,
  random: Random,
  shots: readonly GrownShot[],
): Promise<Record<'known' | 'unknown', GrownShot[]>> {
  const found: Record<'known' | 'unknown', GrownShot[]> = { known: [], unknown: [] };
  const each = [...routesOf(shots).values()].map((ofRoute) => ofRoute[0]!);
  const who = await someUser(target.roomy);
  for (let at = 0; at < each.length; at += PROBED_AT_ONCE) {
    const probed = each.slice(at, at + PROBED_AT_ONCE);
    const awaited = await Promise.all(
      probed.map((shot) => isAwaited(target.service.ready.url, shotOf(shot), nextAddress(), who)),
    );
    for (const [index, shot] of probed.entries()) {
      if (awaited[index]) found[shot.headers['x-api-key'] === undefined ? 'unknown' : 'known'].push(shot);
    }
  }
  return { known: shuffled(random, found.known), unknown: shuffled(random, found.unknown) };
}

/**
 * The largest streams of each operator. They are not measured one by one: memory that is free again stays with the
 * process, so that what is opened first seems to hold most.
 */
export function pickStreams(random: Random, streams: readonly GrownShot[]): GrownShot[] {
  const most = Math.max(...streams.map(({ size }) => size));
  const byOperator = new Map<string, GrownShot[]>();
  for (const shot of streams.filter(({ size }) => size === most)) {
    byOperator.set(shot.operator, [...(byOperator.get(shot.operator) ?? []), shot]);
  }
  return [...byOperator.values()].map((ofOne) => random.pick(ofOne));
}

/**
 * The requests after which most is kept, one at least. What kept something is sent again: the next may replace what the
 * first of them leaves.
 */
export async function findKept(
  target: Target,
  random: Random,
  storing: readonly GrownShot[],
  winners: number,
): Promise<GrownShot[]> {
  let { stored } = await target.measure();
  const growth = async (shot: GrownShot): Promise<number> => {
    await send(target.service.ready.url, shotOf(shot), nextAddress(), await someUser(target.small));
    const before = stored;
    ({ stored } = await target.measure());
    return stored - before;
  };
  const found: { shot: GrownShot; grown: number }[] = [];
  for (const shot of shuffled(random, storing)) {
    if ((await growth(shot)) > KEPT_BYTES) found.push({ shot, grown: await growth(shot) });
  }
  const most = found.sort((a, b) => b.grown - a.grown).map(({ shot }) => shot);
  // One of each route: places of one body are stored alike.
  const ofRoutes = most.filter((shot, at) => most.findIndex(({ route }) => route === shot.route) === at);
  return ofRoutes.length > 0 ? ofRoutes.slice(0, winners) : [random.pick(storing)];
}

/** Asks once for everything that anybody may read: something may begin with that. */
export async function readAll(target: Target, project: AttackedProject, shots: readonly GrownShot[]): Promise<void> {
  for (const shot of shots) await send(target.service.ready.url, shotOf(shot), nextAddress(), await someUser(project));
}

/** Of some requests, the one after which most mails are sent. */
export async function findMailing(
  target: Target,
  random: Random,
  shots: readonly GrownShot[],
  tried: number,
): Promise<GrownShot> {
  let best = { shot: random.pick(shots), mails: -Infinity };
  let before = (await target.measure()).allMails;
  for (const shot of shuffled(random, shots).slice(0, tried)) {
    await send(target.service.ready.url, shotOf(shot), nextAddress(), await someUser(target.roomy));
    await wait(MAILED_MS);
    const { allMails } = await target.measure();
    if (allMails - before > best.mails) best = { shot, mails: allMails - before };
    before = allMails;
  }
  return best.shot;
}

export function shuffled<T>(random: Random, items: readonly T[]): T[] {
  const left = [...items];
  return items.map(() => left.splice(random.below(left.length), 1)[0]!);
}
