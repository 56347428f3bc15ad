import { presentDelivery, presentWebhook } from '../../../src/features/webhooks/present-webhook.js';
import type { Delivery } from '../../../src/features/webhooks/deliveries/delivery.js';
import type { Webhook } from '../../../src/features/webhooks/webhook.js';
import { argument } from '../../shell/command.js';
import type { Result, TextStyle } from '../../view/output.js';

export const webhookArgument = argument('webhookId', 'id of the webhook ("bsvc webhook list" shows them)');

/** Splits `posts.insert,posts.update`; the option may also be repeated. */
export function readEvents(given: readonly string[]): string[] {
  return given.flatMap((text) => text.split(',')).map((event) => event.trim());
}

export function presentAbsent(names: readonly string[]): string[] {
  return names.map((name) => `There is no collection ${name} yet: its events come once there is one.`);
}

/** A webhook with its secret, at the only moment when that can be shown. */
export function presentWithSecret(webhook: Webhook, secret: string | null, more: object, lines: string[]): Result {
  const shown = presentWebhook(webhook);
  return {
    json: { ...shown, ...(secret && { secret }), ...more },
    quiet: secret ?? shown.id,
    text: () =>
      secret ? [...lines, '', `  ${secret}`, '', 'The secret is shown this once.'].join('\n') : lines.join('\n'),
  };
}

export function presentState(webhook: Webhook): string {
  if (webhook.disabled) return `disabled (${webhook.disabled}${webhook.keepsWaiting ? ', keeps what waits' : ''})`;
  return webhook.failingSince ? `failing since ${webhook.failingSince.toISOString()}` : 'active';
}

export async function presentDeliveries(view: TextStyle, deliveries: readonly Delivery[]): Promise<string> {
  if (deliveries.length === 0) return 'No deliveries.';
  return view.table(
    ['id', 'event', 'state', 'attempts', 'last answer', 'created', 'document'],
    deliveries.map(presentDelivery).map((delivery) => {
      const last = delivery.attempts.at(-1);
      return [
        delivery.id,
        delivery.event,
        delivery.state,
        delivery.attempts.length,
        last?.error ?? last?.status,
        delivery.createdAt,
        delivery.documentId,
      ];
    }),
  );
}

/** A header as curl takes it: `Name: value`. */
export function readHeader(text: string): [name: string, value: string] {
  const at = text.indexOf(':');
  if (at < 1) throw new Error('it must be "Name: value".');
  return [text.slice(0, at).trim(), text.slice(at + 1).trim()];
}
