import { monitorEventLoopDelay } from 'node:perf_hooks';
import type { App } from '../../app.js';
import { unlessDuplicate, storeOf } from '../../platform/database/database.js';
import { isRestoring } from '../../platform/database/restore-mark.js';
import { openRing, FIGURES, type Ring, type Sample, type SeriesName } from './rings.js';
import { storeKeptRequests } from './requests/recent-requests.js';
import { BUCKETS, type Totals } from '../../platform/observe/metrics.js';

const SECOND_MS = 1_000;
const MINUTE_MS = 60 * SECOND_MS;
const HOUR_MS = 60 * MINUTE_MS;
const STEP_MS = 10 * SECOND_MS;
const STORED_STEP_MS = 10 * MINUTE_MS;
export const KEPT_HOURS = 30 * 24;
const RINGS = {
  '1h': [STEP_MS, HOUR_MS / STEP_MS],
  '24h': [MINUTE_MS, (24 * HOUR_MS) / MINUTE_MS],
} as const;

export const RANGES = ['1h', '24h', '30d'] as const;
export type Range = (typeof RANGES)[number];

export interface SeriesReading {
  fromMs: number;
  stepMs: number;
  values: Record<SeriesName, (number | null)[]>;
}

/** Figures over time of all processes of this service together. */
export interface Series {
  /** Looks at all processes now; called every ten seconds by itself. */
  look(): Promise<void>;
  readonly rings: Readonly<Record<'1h' | '24h', Ring>>;
  stop(): void;
}

/** The points of one hour, ten minutes each, in the order of `FIGURES`. */
interface StoredHour {
  /** The hour's beginning, such as `2026-11-22T09`: sorts as time does. */
  _id: string;
  points: Record<string, (number | null)[]>;
}

const hourStore = storeOf<StoredHour>('series_hours');

const running = new WeakMap<App['metrics'], Series>();

/** The figures of the service that this process belongs to; of the last hours nothing where none are collected. */
export async function readFigures(app: App, range: Range): Promise<SeriesReading> {
  if (range === '30d') return readStored(app, app.clock.now());
  const ring = running.get(app.metrics)?.rings[range] ?? openRing(...RINGS[range]);
  return { stepMs: ring.stepMs, ...ring.read(app.clock.now()) };
}

/**
 * Collects the figures from now on. Every process looks at all others, so that each can answer for all: a look costs a
 * few numbers per process.
 */
export function startSeries(app: App): Series {
  const delay = monitorEventLoopDelay({ resolution: 100 });
  delay.enable();
  const contribute = async (): Promise<Contribution> => ({
    ...app.metrics.totals(),
    pid: process.pid,
    inFlight: (await app.metrics.read('http_requests_in_flight')) ?? 0,
    // It counts the time between two of its own looks.
    lagMs: Math.max(0, delay.max / 1e6 - 100),
    storedBytes: app.db.stats().fileBytes ?? null,
  });
  app.processGroup?.onCollect('series', contribute);
  const fine = openRing(...RINGS['1h']);
  const coarse = openRing(...RINGS['24h']);
  let before: { parts: readonly Contribution[]; atMs: number } | null = null;

  const series: Series = {
    async look() {
      const gathered = app.processGroup ? await app.processGroup.collect('series') : [await contribute()];
      const parts = gathered as Contribution[];
      const nowMs = app.clock.now();
      const seconds = before ? (nowMs - before.atMs) / SECOND_MS : 0;
      if (before && seconds > 0) {
        fine.put(compareLooks(before.parts, parts, seconds), nowMs);
        passOn(fine, coarse, nowMs);
        await keepPoint(app, coarse, nowMs, before.atMs);
      }
      before = { parts, atMs: nowMs };
      delay.reset();
      await storeKeptRequests(app);
    },
    rings: { '1h': fine, '24h': coarse },
    stop() {
      clearInterval(timer);
      delay.disable();
      running.delete(app.metrics);
    },
  };
  let looking = false;
  const look = (): void => {
    if (looking) return;
    looking = true;
    series
      .look()
      .catch((error: unknown) => app.log.debug({ err: error }, 'figures over time have a gap'))
      .finally(() => (looking = false));
  };
  look();
  const timer = setInterval(look, STEP_MS);
  timer.unref();
  running.set(app.metrics, series);
  return series;
}

/** The minute that is under way, as far as it is known. */
function passOn(fine: Ring, coarse: Ring, nowMs: number): void {
  const from = Math.floor(nowMs / MINUTE_MS) * MINUTE_MS;
  const summary = fine.summarise(from, from + MINUTE_MS);
  if (summary) coarse.put(summary, from);
}

/**
 * Stores ten minutes once they are over: one write by whichever process comes first, the others find it done. A
 * document holds an hour.
 */
async function keepPoint(app: App, coarse: Ring, nowMs: number, beforeMs: number): Promise<void> {
  const end = Math.floor(nowMs / STORED_STEP_MS) * STORED_STEP_MS;
  if (beforeMs >= end || (await isRestoring(app.db))) return;
  const summary = coarse.summarise(end - STORED_STEP_MS, end);
  if (!summary) return;
  const { _id, place } = placeOf(end - STORED_STEP_MS);
  const point = `points.${place}`;
  const $set = { [point]: FIGURES.map((name) => round(summary[name])) };
  const kept = hourStore(app).updateOne({ _id, [point]: { $exists: false } }, { $set }, { upsert: true });
  if (!(await unlessDuplicate(kept)) || place !== 0) return;
  await hourStore(app).deleteMany({ _id: { $lt: placeOf(nowMs - KEPT_HOURS * HOUR_MS)._id } });
}

function placeOf(ms: number): { _id: string; place: number } {
  return { _id: new Date(ms).toISOString().slice(0, 13), place: Math.floor((ms % HOUR_MS) / STORED_STEP_MS) };
}

async function readStored(app: App, nowMs: number): Promise<SeriesReading> {
  const last = Math.floor(nowMs / HOUR_MS) * HOUR_MS;
  const fromMs = last - (KEPT_HOURS - 1) * HOUR_MS;
  const stored = await hourStore(app)
    .find({ _id: { $gte: placeOf(fromMs)._id } })
    .limit(KEPT_HOURS)
    .toArray();
  const byHour = new Map(stored.map(({ _id, points }) => [_id, points]));
  const values = Object.fromEntries(FIGURES.map((name) => [name, [] as (number | null)[]])) as SeriesReading['values'];
  for (let at = fromMs; at < last + HOUR_MS; at += STORED_STEP_MS) {
    const { _id, place } = placeOf(at);
    const point = byHour.get(_id)?.[place];
    FIGURES.forEach((name, series) => values[name].push(point?.[series] ?? null));
  }
  return { fromMs, stepMs: STORED_STEP_MS, values };
}

/** Enough for a plot. */
function round(value: Sample[SeriesName]): number | null {
  return value === null ? null : Number(value.toPrecision(4));
}

/** One process's report on itself. */
interface Contribution extends Totals {
  pid: number;
  inFlight: number;
  lagMs: number;
  /** The same in every process; null where the store knows nothing. */
  storedBytes: number | null;
}

/**
 * The figures between two looks at all processes. A process that was not there before counts from its start; one that
 * has ended has reported its last values.
 */
function compareLooks(before: readonly Contribution[], now: readonly Contribution[], seconds: number): Sample {
  const known = new Map(before.map((each) => [each.pid, each]));
  const requests = Array<number>(6).fill(0);
  const durations = Array<number>(BUCKETS.length + 1).fill(0);
  const events: Record<string, number> = {};
  for (const each of now) {
    const last = known.get(each.pid);
    each.requests.forEach((count, at) => (requests[at]! += Math.max(0, count - (last?.requests[at] ?? 0))));
    each.durations.forEach((count, at) => (durations[at]! += Math.max(0, count - (last?.durations[at] ?? 0))));
    for (const [name, count] of Object.entries(each.events)) {
      events[name] = (events[name] ?? 0) + Math.max(0, count - (last?.events[name] ?? 0));
    }
  }
  const perSecond = (...counts: (number | undefined)[]): number =>
    counts.reduce<number>((sum, count) => sum + (count ?? 0), 0) / seconds;
  return {
    requests2xx: perSecond(requests[1]),
    requests3xx: perSecond(requests[2]),
    requests4xx: perSecond(requests[3]),
    requests5xx: perSecond(requests[4]),
    p50Ms: quantile(durations, 0.5),
    p95Ms: quantile(durations, 0.95),
    p99Ms: quantile(durations, 0.99),
    inFlight: now.reduce((sum, each) => sum + each.inFlight, 0),
    eventLoopLagMs: Math.max(0, ...now.map(({ lagMs }) => lagMs)),
    webhooksDelivered: perSecond(events['webhook_attempts delivered']),
    webhooksFailed: perSecond(...failures(events, 'webhook_attempts ', ['delivered'])),
    mailsSent: perSecond(events['mails sent']),
    mailsFailed: perSecond(events['mails failed'], events['mails bounced'], events['mails complained']),
    storedBytes: now.find(({ storedBytes }) => storedBytes !== null)?.storedBytes ?? null,
  };
}

function failures(events: Readonly<Record<string, number>>, prefix: string, good: readonly string[]): number[] {
  return Object.entries(events)
    .filter(([name]) => name.startsWith(prefix) && !good.includes(name.slice(prefix.length)))
    .map(([, count]) => count);
}

/** Milliseconds within which this share of the requests was answered, as exact as the buckets are; null without any. */
function quantile(durations: readonly number[], share: number): number | null {
  const all = durations.reduce((sum, count) => sum + count, 0);
  if (all === 0) return null;
  let below = 0;
  for (let at = 0; at < durations.length; at++) {
    const count = durations[at]!;
    if (below + count >= share * all) {
      const from = at === 0 ? 0 : BUCKETS[at - 1]!;
      // Slower than all buckets: the exact time is unknown.
      const to = BUCKETS[at] ?? from;
      return 1000 * (from + (to - from) * ((share * all - below) / count));
    }
    below += count;
  }
  return null;
}
