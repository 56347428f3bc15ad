import type { MetricObjectWithValues, MetricValue } from 'prom-client';
import { withTimeout } from '../time/with-timeout.js';

/** Events counted beside requests, each with its possible outcomes. */
export type CountedEvent =
  'webhook_attempts' | 'hook_calls' | 'mails' | 'long_reads' | 'cascaded_references' | 'expired_documents';

type Metric = MetricObjectWithValues<MetricValue<string>>;

/** Counts of this process since it started; writing one costs a look-up. */
export interface Metrics {
  /** A request that was answered; `route` is the pattern of its route, never its path. */
  request(method: string, route: string, status: number, seconds: number): void;
  event(name: CountedEvent, outcome: string): void;
  /** Registers a gauge whose value is read whenever metrics are collected; `shared` = the same in every process. */
  gauge(
    name: string,
    help: string,
    read: () => GaugeValues | Promise<GaugeValues>,
    options?: { shared: boolean },
  ): void;
  /** All metrics, as plain values that can be sent to another process. */
  collect(): Promise<Metric[]>;
  /** The sums that figures over time are made from: a few numbers, for a fraction of what `collect` costs. */
  totals(): Totals;
  /** The value of a gauge, its parts added up; null for one that is not there or cannot be read just now. */
  read(name: string): Promise<number | null>;
}

/** Sums since the process started. */
export interface Totals {
  /** Requests by hundreds of their status, 1xx first. */
  requests: number[];
  /** Requests by how long they took: of each of `BUCKETS`, and of those that took longer. */
  durations: number[];
  /** `<event> <outcome>` */
  events: Record<string, number>;
}

export type GaugeValues = { labels?: Record<string, string>; value: number }[];

const READ_MS = 800;
/** Upper bounds, seconds. */
export const BUCKETS: readonly number[] = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10];

interface Tally {
  labels: { method: string; route: string; status: number };
  /** Counts by bucket, not summed up; the last one is for requests slower than all. */
  counts: number[];
  sum: number;
}

interface Gauge {
  name: string;
  help: string;
  read: () => GaugeValues | Promise<GaugeValues>;
  shared: boolean;
}

const EVENT_HELP: Record<CountedEvent, string> = {
  webhook_attempts: 'Attempts to deliver data webhooks',
  hook_calls: 'Calls of own code',
  mails: 'Mails by what is known of them',
  long_reads: 'Reads that examined more than 10,000 documents, by command',
  expired_documents: 'Documents that went by themselves, to the trash or for good',
  cascaded_references: 'Documents changed because one that they refer to went or came back',
};

export function openMetrics(): Metrics {
  const tallies = new Map<string, Tally>();
  const events = new Map<CountedEvent, Map<string, number>>();
  const gauges: Gauge[] = [];
  let processMetrics: Promise<() => Promise<Metric[]>> | null = null;

  return {
    request(method, route, status, seconds) {
      const key = `${method} ${status} ${route}`;
      let tally = tallies.get(key);
      if (!tally) {
        tally = { labels: { method, route, status }, counts: Array<number>(BUCKETS.length + 1).fill(0), sum: 0 };
        tallies.set(key, tally);
      }
      let bucket = 0;
      while (bucket < BUCKETS.length && seconds > BUCKETS[bucket]!) bucket++;
      tally.counts[bucket]!++;
      tally.sum += seconds;
    },
    event(name, outcome) {
      let outcomes = events.get(name);
      if (!outcomes) events.set(name, (outcomes = new Map<string, number>()));
      outcomes.set(outcome, (outcomes.get(outcome) ?? 0) + 1);
    },
    gauge(name, help, read, { shared } = { shared: false }) {
      gauges.push({ name, help, read, shared });
    },
    totals() {
      const requests = Array<number>(6).fill(0);
      const durations = Array<number>(BUCKETS.length + 1).fill(0);
      for (const { labels, counts } of tallies.values()) {
        const hundreds = Math.min(5, Math.max(0, Math.floor(labels.status / 100) - 1));
        for (let at = 0; at < counts.length; at++) {
          durations[at]! += counts[at]!;
          requests[hundreds]! += counts[at]!;
        }
      }
      const outcomes = [...events].flatMap(([name, counts]) =>
        [...counts].map(([outcome, count]) => [`${name} ${outcome}`, count] as const),
      );
      return { requests, durations, events: Object.fromEntries(outcomes) };
    },
    async read(name) {
      const found = gauges.find((each) => each.name === name);
      if (!found) return null;
      const values = await readGauge(found);
      return values && values.reduce((sum, { value }) => sum + value, 0);
    },
    async collect() {
      const collectProcess = await (processMetrics ??= openProcessMetrics());
      return [
        presentRequests([...tallies.values()]),
        ...[...events].map(([name, outcomes]) => presentEvents(name, outcomes)),
        ...(await Promise.all(gauges.map(presentGauge))),
        ...(await collectProcess()),
      ];
    },
  };
}

/** The Prometheus text of what several processes have collected, added up. */
export async function formatMetrics(parts: Metric[][]): Promise<{ text: string; contentType: string }> {
  const { AggregatorRegistry } = await import('prom-client');
  const registry = AggregatorRegistry.aggregate(parts);
  return { text: await registry.metrics(), contentType: registry.contentType };
}

/** Memory, processor time, event loop, as prom-client has them; loaded on first use. */
async function openProcessMetrics(): Promise<() => Promise<Metric[]>> {
  const { collectDefaultMetrics, Registry } = await import('prom-client');
  const registry = new Registry();
  collectDefaultMetrics({ register: registry });
  return async () => (await registry.getMetricsAsJSON()).filter((metric) => !isMisnamed(metric));
}

/**
 * Only a counter may be named a total. prom-client names the sums of some gauges so, which linters of metrics refuse;
 * the gauges themselves say the same by type.
 */
function isMisnamed({ type, name }: Metric): boolean {
  return type.toString() === 'gauge' && name.endsWith('_total');
}

function presentRequests(tallies: Tally[]): Metric {
  const name = 'bsvc_http_request_duration_seconds';
  const values = tallies.flatMap(({ labels, counts, sum }) => {
    let below = 0;
    const buckets = [...BUCKETS, '+Inf'].map((le, at) => ({
      metricName: `${name}_bucket`,
      labels: { ...labels, le },
      value: (below += counts[at]!),
    }));
    return [
      ...buckets,
      { metricName: `${name}_sum`, labels, value: sum },
      { metricName: `${name}_count`, labels, value: below },
    ];
  });
  return describe(name, 'Requests by route and how long they took', 'histogram', values);
}

function presentEvents(name: CountedEvent, outcomes: Map<string, number>): Metric {
  const values = [...outcomes].map(([outcome, value]) => ({ labels: { outcome }, value }));
  return describe(`bsvc_${name}_total`, EVENT_HELP[name], 'counter', values);
}

/** A gauge that cannot be read just now is left out, and so is one that takes longer than another process waits. */
function readGauge({ read }: Gauge): Promise<GaugeValues | null> {
  return withTimeout(
    (async () => read())().catch(() => null),
    READ_MS,
    null,
  );
}

async function presentGauge(gauge: Gauge): Promise<Metric> {
  const { name, help, shared } = gauge;
  const values = (await readGauge(gauge)) ?? [];
  const filled = values.map(({ labels = {}, value }) => ({ labels, value }));
  return describe(`bsvc_${name}`, help, 'gauge', filled, shared ? 'first' : 'sum');
}

function describe(name: string, help: string, type: string, values: object[], aggregator = 'sum'): Metric {
  // The form in which prom-client's registry gives its metrics, which its types do not say.
  return { name, help, type, values, aggregator } as unknown as Metric;
}
