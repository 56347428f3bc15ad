import { retryDelay, type RetrySchedule } from '../../../platform/jobs/job.js';
import type { App } from '../../../app.js';
import { failPendingDeliveries } from './claim-delivery.js';
import { deliveryStore, KEPT_ATTEMPTS, type Delivery, type DeliveryAttempt } from './delivery.js';
import { FAILING_DAYS, changeWebhooks, type DisabledReason, type Webhook } from '../webhook-store.js';
import { DAY_MS } from '../../../platform/time/clock.js';

const SECOND = 1_000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;

/** decisions.md 8: eight attempts within about seventeen and a half hours. */
const DELIVERY_RETRIES: RetrySchedule = {
  delaysMs: [5 * SECOND, MINUTE, 5 * MINUTE, 15 * MINUTE, HOUR, 4 * HOUR, 12 * HOUR],
};

/** A receiver may ask for no more patience than the longest pause of the schedule. */
const MAX_PATIENCE_MS = 12 * HOUR;
const GONE = 410;

type AttemptVerdict =
  | { kind: 'delivered' }
  /** Again after `delayMs`. */
  | { kind: 'retry'; delayMs: number }
  /** Never again; with `gone` the receiver wants nothing more at all. */
  | { kind: 'failed'; gone: boolean };

export interface AttemptOutcome {
  /** null when there was no answer. */
  status: number | null;
  /** The answer's `Retry-After`, if any. */
  retryAfter?: string;
}

/** Of an answer: what a server sends before one (1xx) is none. */
export function isAccepted(status: number): boolean {
  return status < 300;
}

/** The consequence of an attempt for its delivery; `failures` counts those before it, `random` is in [0, 1). */
export function judgeAttempt(outcome: AttemptOutcome, failures: number, nowMs: number, random: number): AttemptVerdict {
  const { status } = outcome;
  if (status !== null && isAccepted(status)) return { kind: 'delivered' };
  if (status === GONE) return { kind: 'failed', gone: true };
  const delayMs = retryDelay(DELIVERY_RETRIES, failures + 1, random);
  if (delayMs === null) return { kind: 'failed', gone: false };
  return { kind: 'retry', delayMs: Math.max(delayMs, readRetryAfter(outcome.retryAfter, nowMs)) };
}

/** Seconds or an HTTP date, as milliseconds from now; 0 for anything else. */
function readRetryAfter(text: string | undefined, nowMs: number): number {
  if (text === undefined) return 0;
  const asked = /^\d{1,9}$/.test(text) ? Number(text) * SECOND : Date.parse(text) - nowMs;
  return Number.isFinite(asked) ? Math.min(Math.max(0, asked), MAX_PATIENCE_MS) : 0;
}

/**
 * Stores the outcome of an attempt and its consequences. Null when another worker has begun or recorded an attempt
 * since: the outcome comes too late and is refused.
 */
export async function recordAttempt(
  app: App,
  webhook: Webhook,
  delivery: Delivery,
  { attempt, outcome }: { attempt: DeliveryAttempt; outcome: AttemptOutcome },
): Promise<AttemptVerdict | null> {
  const nowMs = app.clock.now();
  const verdict = judgeAttempt(outcome, delivery.failures, nowMs, Math.random());
  const result = await deliveryStore(app).updateOne(
    { _id: delivery._id, state: 'pending', claims: delivery.claims },
    {
      $set: { ...stateAfter(verdict, nowMs), unfinished: 0, updatedAt: new Date(nowMs) },
      $inc: { claims: 1, failures: verdict.kind === 'delivered' ? 0 : 1 },
      $push: { attempts: { $each: [attempt], $slice: -KEPT_ATTEMPTS } },
    },
  );
  if (result.matchedCount === 0) return null;
  app.metrics.event('webhook_attempts', verdict.kind);
  await recordHealth(app, webhook, delivery, verdict, nowMs);
  return verdict;
}

function stateAfter(verdict: AttemptVerdict, nowMs: number): Partial<Delivery> {
  return verdict.kind === 'retry' ? { dueAt: new Date(nowMs + verdict.delayMs) } : { state: verdict.kind };
}

/** Notes on the webhook when its failing begins and ends, and disables one that is gone or has failed for days. */
async function recordHealth(
  app: App,
  webhook: Webhook,
  { projectId }: Delivery,
  verdict: AttemptVerdict,
  nowMs: number,
): Promise<void> {
  const works = verdict.kind === 'delivered';
  const failingSince = works ? null : (webhook.failingSince ?? new Date(nowMs));
  const reason = disabledAfter(verdict, failingSince, nowMs);
  if (!reason && failingSince?.getTime() === webhook.failingSince?.getTime()) return;
  let keepsWaiting = false;
  await changeWebhooks(app, projectId, (webhooks) =>
    webhooks.map((current) => {
      if (!current.id.equals(webhook.id)) return current;
      keepsWaiting = current.keepsWaiting ?? false;
      return { ...current, failingSince, disabled: current.disabled ?? reason, updatedAt: new Date(nowMs) };
    }),
  );
  if (!reason || keepsWaiting) return;
  await failPendingDeliveries(app, webhook.id);
  app.log.warn({ webhookId: webhook.id.toHexString(), reason }, 'a webhook was disabled');
}

function disabledAfter(verdict: AttemptVerdict, failingSince: Date | null, nowMs: number): DisabledReason | null {
  if (verdict.kind === 'failed' && verdict.gone) return 'gone';
  return failingSince && nowMs - failingSince.getTime() >= FAILING_DAYS * DAY_MS ? 'failing' : null;
}
