import type { App } from '../../../app.js';
import { AppError } from '../../../errors.js';
import { OwnCodeError } from '../../../platform/processes/own-code.js';
import { ownCodeSettings } from '../../projects/own-code.js';
import { OutboundError } from '../../../platform/network/outbound.js';
import { VERSION } from '../../../package.js';
import { readBeginning } from '../../../text.js';
import type { Delivery, DeliveryAttempt } from './delivery.js';
import { isAccepted, type AttemptOutcome } from './record-attempt.js';
import { signDelivery } from './sign-delivery.js';
import { isOwnHandler } from '../add-webhook.js';
import { openLiveSecrets, type Webhook } from '../webhook-store.js';

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
  const log = (status: number | null, response: string, error: string | null): DeliveryAttempt => ({
    at,
    durationMs: Math.round(performance.now() - begun),
    status,
    response,
    error,
  });
  if (isOwnHandler(webhook.url)) return runHandler(app, webhook.url, delivery, body, log);
  const secrets = openLiveSecrets(app, delivery.projectId, webhook);
  try {
    const reply = await app.outbound.send({
      url: webhook.url,
      method: 'POST',
      headers: {
        ...webhook.headers,
        'content-type': 'application/json',
        'user-agent': `bsvc/${VERSION}`,
        ...signDelivery(secrets, delivery.eventId, app.clock.machine(), body),
      },
      body,
      signal,
    });
    const { status, headers, body: answer } = reply;
    return {
      attempt: log(status, readBeginning(answer), isAccepted(status) ? null : `The receiver answered ${status}.`),
      outcome: { status, retryAfter: headers['retry-after']?.toString() },
    };
  } catch (error) {
    if (!(error instanceof OutboundError) || error.failure === 'aborted') throw error;
    return { attempt: log(null, '', error.message), outcome: { status: null } };
  }
}

/** As long as a receiver has. */
const HANDLER_MS = 10_000;

/** The same for a handler of the project's own code: it has the event when it has returned. */
async function runHandler(
  app: App,
  url: string,
  { projectId }: Pick<Delivery, 'projectId'>,
  payload: string,
  log: (status: number | null, response: string, error: string | null) => DeliveryAttempt,
): Promise<{ attempt: DeliveryAttempt; outcome: AttemptOutcome }> {
  const call = { handler: url.slice('run:'.length), payload, timeoutMs: HANDLER_MS, depth: 0 };
  try {
    await app.ownCode.call(projectId.toHexString(), ownCodeSettings(app, projectId), call);
    return { attempt: log(200, '', null), outcome: { status: 200 } };
  } catch (error) {
    if (!(error instanceof OwnCodeError || error instanceof AppError)) throw error;
    return { attempt: log(null, '', error.message), outcome: { status: null } };
  }
}
