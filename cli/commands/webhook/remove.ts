import { presentWebhook } from '../../../src/features/webhooks/present-webhook.js';
import { removeWebhook } from '../../../src/features/webhooks/remove-webhook.js';
import { chooseProject, projectOption } from '../../ask/choose-project.js';
import { defineCommand } from '../../shell/command.js';
import { confirmByName, yesOption } from '../../ask/confirm.js';
import { webhookArgument } from './present.js';

export default defineCommand({
  details: 'The log of its deliveries goes too; what still waits is not sent.',
  examples: [
    'bsvc webhook remove 665f1c2e9b1d8a0012ab34cd --project shop --yes',
    'bsvc webhook edit 665f1c2e9b1d8a0012ab34cd --project shop --disable',
  ],
  audited: true,
  parameters: { webhookId: webhookArgument, project: projectOption, yes: yesOption },
  async run(context, { webhookId, project: named, yes }) {
    await confirmByName(context, yes, 'Removes the webhook and the log of its deliveries.', webhookId);
    const { app, project } = await chooseProject(context, named);
    const webhook = presentWebhook(await removeWebhook(app, project, webhookId));
    return { json: webhook, quiet: webhook.id, text: () => `Webhook ${webhook.id} for ${webhook.url} is removed.` };
  },
});
