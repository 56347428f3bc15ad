import { listWebhooks } from '../../../src/features/webhooks/list-webhooks.js';
import { presentWebhook } from '../../../src/features/webhooks/present-webhook.js';
import { defineProjectCommand } from '../../ask/choose-project.js';
import { presentList } from '../../view/present-list.js';
import { presentState } from './present.js';

export default defineProjectCommand({
  examples: ['bsvc webhook list --project shop', 'bsvc webhook list --project shop --json'],
  async run(context, { app, project }) {
    const webhooks = await listWebhooks(app, project);
    return {
      ...presentList(webhooks, {
        name: ({ id }) => id.toHexString(),
        empty: 'No webhooks yet. Add one with: bsvc webhook add --url <url> --events <events>',
        head: ['id', 'url', 'events', 'state', 'description'],
        row: (webhook) => [
          webhook.id.toHexString(),
          webhook.url,
          webhook.events.join(', '),
          presentState(webhook),
          webhook.description,
        ],
      }),
      json: webhooks.map(presentWebhook),
    };
  },
});
