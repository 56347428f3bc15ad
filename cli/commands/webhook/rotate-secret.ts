import { rotateSecret } from '../../../src/features/webhooks/webhook-store.js';
import { defineProjectCommand } from '../../ask/choose-project.js';
import { presentWithSecret, webhookArgument } from './present.js';

export default defineProjectCommand({
  details: 'For 24 hours deliveries are signed with the old and the new secret, so that the receiver can change over.',
  examples: [
    'bsvc webhook rotate-secret 665f1c2e9b1d8a0012ab34cd --project shop',
    'SECRET=$(bsvc webhook rotate-secret 665f1c2e9b1d8a0012ab34cd --project shop --quiet)',
  ],
  audited: true,
  parameters: { webhookId: webhookArgument },
  async run(context, { app, project, webhookId }) {
    const { webhook, secret, previousExpiresAt } = await rotateSecret(app, project, webhookId);
    const end = previousExpiresAt.toISOString();
    return presentWithSecret(webhook, secret, { previousSecretExpiresAt: end }, [
      `Webhook ${webhookId} has a new secret; the old one signs too until ${end}.`,
    ]);
  },
});
