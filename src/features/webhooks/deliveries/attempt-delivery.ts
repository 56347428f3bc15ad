import type { App } from '../../../app.js';
import { OutboundError } from '../../../platform/network/outbound.js';
import { VERSION } from '../../../package.js';
import type { Delivery, DeliveryAttempt } from './delivery.js';
import { isAccepted, type AttemptOutcome } from './judge-attempt.js';
import { signDelivery } from './sign-delivery.js';
import type { Webhook } from '../webhook.js';
import { openLiveSecrets } from '../webhook-store.js';

/**
 * Sends a delivery once and returns the outcome; throws only errors of our own, or an `aborted` OutboundError. Stores
 * nothing.
 */
export async function attemptDelivery(
  app: App,
  webhook: Webhook,
  delivery: Pick<Delivery, 'projectId' | 'eventId'>,
  body: string,
  signal?: AbortSignal,
): Promise<{ attempt: DeliveryAttempt; outcome: AttemptOutcome }> {
  const at = new Date(app.clock.now());
  const begun = performance.now();
  const secrets = openLiveSecrets(app, delivery.projectId, webhook);
  const log = (status: number | null, response: string, error: string | null): DeliveryAttempt => ({
    at,
    durationMs: Math.round(performance.now() - begun),
    status,
    response,
    error,
  });
  try {
    const reply = await app.outbound.send({
      url: webhook.url,
      method: 'POST',
      headers: {
        ...webhook.headers,
        'content-type': 'application/json',
        'user-agent': `bsvc/${VERSION}`,
        ...signDelivery(secrets, delivery.eventId, at.getTime(), body),
      },
      body,
      signal,
    });
    const { status, headers, body: answer } = reply;
    return {
      attempt: log(status, answer, isAccepted(status) ? null : `The receiver answered ${status}.`),
      outcome: { status, retryAfter: headers['retry-after']?.toString() },
    };
  } catch (error) {
    if (!(error instanceof OutboundError) || error.failure === 'aborted') throw error;
    return { attempt: log(null, '', error.message), outcome: { status: null } };
  }
}
