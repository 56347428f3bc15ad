import { presentDelivery } from '../../../src/features/webhooks/present-webhook.js';
import { testWebhook } from '../../../src/features/webhooks/deliveries/test-webhook.js';
import { defineProjectCommand } from '../../ask/choose-project.js';
import { EXIT } from '../../view/exit.js';
import { webhookArgument } from './present.js';

export default defineProjectCommand({
  details:
    'Sends the event test.ping once and waits for the answer, at most ten seconds. Exit 1 when it was not accepted.',
  examples: [
    'bsvc webhook test 665f1c2e9b1d8a0012ab34cd --project shop',
    'bsvc webhook deliveries 665f1c2e9b1d8a0012ab34cd --project shop --limit 1',
  ],
  parameters: { webhookId: webhookArgument },
  async run(context, { app, project, webhookId }) {
    const delivery = await testWebhook(app, project, webhookId);
    const attempt = delivery.attempts[0]!;
    return {
      json: presentDelivery(delivery),
      quiet: delivery.state,
      text: () => `test.ping: ${delivery.state}${attempt.status === null ? '' : ` (${attempt.status})`}.`,
      ...(attempt.error && {
        failure: { exitCode: EXIT.refused, code: 'NOT_DELIVERED', message: `Not delivered: ${attempt.error}` },
      }),
    };
  },
});
