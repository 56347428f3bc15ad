import type { App } from '../../app.js';
import { unavailable } from '../../errors.js';
import { FairLimiter, type FullShare, type LimitScope, type Shares } from '../../fair-limiter.js';
import { OPERATORS_TENANT } from './tenants.js';

/** A refusal, for the log and the metrics: which part of a request's way was full, in what unit, and whose share. */
export interface LoadRejection extends FullShare {
  stage: string;
  unit: string;
}

const RESERVED_PART = 20;

/** Shares of `all`: a project has half at most, an address a tenth, and the last twentieth is the operators'. */
export function requestShares(all: number): Shares {
  const reserve = { project: OPERATORS_TENANT, amount: Math.floor(all / RESERVED_PART) };
  return { all, project: Math.max(1, all / 2), address: Math.max(1, all / 10), lendsToAddress: true, reserve };
}

/** Where requests wait for room at one stage of their way. */
export interface StageOptions {
  stage: string;
  unit: string;
  most: number;
  maxWaitMs: number;
  maxWaiting: number;
  onRejection?: (refusal: LoadRejection) => void;
}

/** Bounds what all requests hold at one stage; 503 OVERLOADED when too many wait, or for too long. */
export function openStage({ stage, unit, most, maxWaitMs, maxWaiting, onRejection }: StageOptions): FairLimiter {
  return new FairLimiter({
    shares: requestShares(most),
    waiting: requestShares(maxWaiting),
    maxWaitMs,
    refuse: (full) => {
      onRejection?.({ stage, unit, ...full });
      return unavailable('OVERLOADED', TEXTS[full.scope], { retryAfterSeconds: 1 });
    },
  });
}

const TEXTS: Readonly<Record<LimitScope, string>> = {
  all: 'The server has too much to do just now: try again in a moment',
  project: 'The project has too many requests under way: try again in a moment',
  address: 'Your address has too many requests under way: try again in a moment',
};

/** A flood of refusals is a line a second. */
const LOG_EVERY_MS = 1_000;

/** Returns what notes each refusal in the metrics, and in the log at most once a second for each kind. */
export function rejectionReport({ log, metrics }: Pick<App, 'log' | 'metrics'>): (refusal: LoadRejection) => void {
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
