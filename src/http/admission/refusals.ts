import type { App } from '../../app.js';
import type { RoomRefusal } from './room.js';

/** A flood of refusals is a line a second. */
const LOG_EVERY_MS = 1_000;

/** Returns what notes each refusal in the metrics, and in the log at most once a second for each kind. */
export function refusalReport({ log, metrics }: Pick<App, 'log' | 'metrics'>): (refusal: RoomRefusal) => void {
  const counts = new Map<string, { labels: Record<string, string>; value: number; nextMs: number }>();
  metrics.gauge('admission_refusals', 'Requests refused because of load, since the start', () =>
    [...counts.values()].map(({ labels, value }) => ({ labels, value })),
  );
  return (refusal) => {
    const { stage, unit, scope } = refusal;
    const key = `${stage} ${unit} ${scope}`;
    let count = counts.get(key);
    if (!count) counts.set(key, (count = { labels: { stage, unit, scope }, value: 0, nextMs: 0 }));
    count.value++;
    const now = performance.now();
    if (now < count.nextMs) return;
    count.nextMs = now + LOG_EVERY_MS;
    log.warn({ ...refusal, refusals: count.value }, 'requests are refused: the tenant has its share, or all is taken');
  };
}
