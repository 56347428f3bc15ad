import { presentDelivery } from '../../../src/features/webhooks/present-webhook.js';
import { replayDelivery } from '../../../src/features/webhooks/deliveries/replay-delivery.js';
import { defineProjectCommand } from '../../ask/choose-project.js';
import { argument } from '../../shell/command.js';
import { webhookArgument } from './present.js';

export default defineProjectCommand({
  details:
    'The worker sends it again, under the same webhook-id, with a new series of attempts. What was delivered can be sent again for a day, what failed as long as it is kept.',
  examples: [
    'bsvc webhook replay 665f1c2e9b1d8a0012ab34cd evt_665f….665f… --project shop',
    'bsvc webhook deliveries 665f1c2e9b1d8a0012ab34cd --project shop --state failed --quiet',
  ],
  audited: true,
  parameters: {
    webhookId: webhookArgument,
    deliveryId: argument('deliveryId', 'id of the delivery ("bsvc webhook deliveries" shows them)'),
  },
  async run(context, { app, project, webhookId, deliveryId }) {
    const delivery = await replayDelivery(app, project, webhookId, deliveryId);
    return {
      json: presentDelivery(delivery),
      quiet: delivery._id,
      text: () => `Delivery ${delivery._id} (${delivery.event}) is queued again.`,
    };
  },
});
