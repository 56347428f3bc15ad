import { rotateSecret } from '../../../src/features/webhooks/rotate-secret.js';
import { chooseProject, projectOption } from '../../ask/choose-project.js';
import { defineCommand } from '../../shell/command.js';
import { presentWithSecret, webhookArgument } from './present.js';

export default defineCommand({
  details: 'For 24 hours deliveries are signed with the old and the new secret, so that the receiver can change over.',
  examples: [
    'bsvc webhook rotate-secret 665f1c2e9b1d8a0012ab34cd --project shop',
    'SECRET=$(bsvc webhook rotate-secret 665f1c2e9b1d8a0012ab34cd --project shop --quiet)',
  ],
  audited: true,
  parameters: { webhookId: webhookArgument, project: projectOption },
  async run(context, { webhookId, project: named }) {
    const { app, project } = await chooseProject(context, named);
    const { webhook, secret, previousExpiresAt } = await rotateSecret(app, project, webhookId);
    const end = previousExpiresAt.toISOString();
    return presentWithSecret(webhook, secret, { previousSecretExpiresAt: end }, [
      `Webhook ${webhookId} has a new secret; the old one signs too until ${end}.`,
    ]);
  },
});
