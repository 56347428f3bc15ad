import { listWebhooks } from '../../../src/features/webhooks/list-webhooks.js';
import { presentWebhook } from '../../../src/features/webhooks/present-webhook.js';
import { chooseProject, projectOption } from '../../ask/choose-project.js';
import { defineCommand } from '../../shell/command.js';
import { presentState } from './present.js';

export default defineCommand({
  examples: ['bsvc webhook list --project shop', 'bsvc webhook list --project shop --json'],
  parameters: { project: projectOption },
  async run(context, input) {
    const { app, project } = await chooseProject(context, input.project);
    const webhooks = await listWebhooks(app, project);
    return {
      json: webhooks.map(presentWebhook),
      quiet: webhooks.map(({ id }) => id.toHexString()),
      text: (view) =>
        webhooks.length === 0
          ? 'No webhooks yet. Add one with: bsvc webhook add --url <url> --events <events>'
          : view.table(
              ['id', 'url', 'events', 'state', 'description'],
              webhooks.map((webhook) => [
                webhook.id.toHexString(),
                webhook.url,
                webhook.events.join(', '),
                presentState(webhook),
                webhook.description,
              ]),
            ),
    };
  },
});
