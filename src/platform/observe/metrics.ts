import type { MetricObjectWithValues, MetricValue } from 'prom-client';
import { withTimeout } from '../time/with-timeout.js';

/** Events counted beside requests, each with its possible outcomes. */
export type CountedEvent = 'webhook_attempts' | 'mails';

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
}

export type GaugeValues = { labels?: Record<string, string>; value: number }[];

const READ_MS = 800;
const BUCKETS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10];

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
  mails: 'Mails by what is known of them',
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
      if (!outcomes) events.set(name, (outcomes = new Map()));
      outcomes.set(outcome, (outcomes.get(outcome) ?? 0) + 1);
    },
    gauge(name, help, read, { shared } = { shared: false }) {
      gauges.push({ name, help, read, shared });
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

/** Memory, processor time, event loop, as prom-client has them; loaded when somebody asks for the first time. */
async function openProcessMetrics(): Promise<() => Promise<Metric[]>> {
  const { collectDefaultMetrics, Registry } = await import('prom-client');
  const registry = new Registry();
  collectDefaultMetrics({ register: registry });
  return () => registry.getMetricsAsJSON() as Promise<Metric[]>;
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

async function presentGauge({ name, help, read, shared }: Gauge): Promise<Metric> {
  // A gauge that cannot be read just now is left out, and so is one that takes longer than a sibling waits for all of
  // them.
  const reading = (async () => read())().catch(() => []);
  const values = await withTimeout(reading, READ_MS, []);
  const filled = values.map(({ labels = {}, value }) => ({ labels, value }));
  return describe(`bsvc_${name}`, help, 'gauge', filled, shared ? 'first' : 'sum');
}

function describe(name: string, help: string, type: string, values: object[], aggregator = 'sum'): Metric {
  return { name, help, type, values, aggregator } as unknown as Metric;
}
