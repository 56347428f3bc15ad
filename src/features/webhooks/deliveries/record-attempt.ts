import type { App } from '../../../app.js';
import { failPendingDeliveries } from './claim-delivery.js';
import { deliveryStore, KEPT_ATTEMPTS, type Delivery, type DeliveryAttempt } from './delivery.js';
import { judgeAttempt, type AttemptOutcome, type AttemptVerdict } from './judge-attempt.js';
import { FAILING_DAYS, type DisabledReason, type Webhook } from '../webhook.js';
import { changeWebhooks } from '../webhook-store.js';
import { DAY_MS } from '../../../platform/time/clock.js';

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
