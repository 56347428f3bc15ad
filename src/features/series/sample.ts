import { BUCKETS, type Totals } from '../../platform/observe/metrics.js';
import type { Sample } from './rings.js';

/** One process's report on itself. */
export interface Contribution extends Totals {
  pid: number;
  inFlight: number;
  lagMs: number;
  /** The same in every process; null where the store knows nothing. */
  storedBytes: number | null;
}

/**
 * The figures between two looks at all processes. A process that was not there before counts from its start; one that
 * is gone has told its last.
 */
export function compareLooks(before: readonly Contribution[], now: readonly Contribution[], seconds: number): Sample {
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
      // Slower than all bounds: nobody knows by how much.
      const to = BUCKETS[at] ?? from;
      return 1000 * (from + (to - from) * ((share * all - below) / count));
    }
    below += count;
  }
  return null;
}
