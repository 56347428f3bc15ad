import { presentWebhook } from '../../../src/features/webhooks/present-webhook.js';
import { removeWebhook } from '../../../src/features/webhooks/remove-webhook.js';
import { defineProjectCommand } from '../../ask/choose-project.js';
import { webhookArgument } from './present.js';

export default defineProjectCommand({
  details: 'The log of its deliveries goes too; what still waits is not sent.',
  examples: [
    'bsvc webhook remove 665f1c2e9b1d8a0012ab34cd --project shop --yes',
    'bsvc webhook edit 665f1c2e9b1d8a0012ab34cd --project shop --disable',
  ],
  audited: true,
  destroys: ({ webhookId }) => ({ what: 'Removes the webhook and the log of its deliveries.', name: webhookId }),
  parameters: { webhookId: webhookArgument },
  async run(_context, { app, project, webhookId }) {
    const webhook = presentWebhook(await removeWebhook(app, project, webhookId));
    return { json: webhook, quiet: webhook.id, text: () => `Webhook ${webhook.id} for ${webhook.url} is removed.` };
  },
});
