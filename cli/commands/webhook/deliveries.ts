import type { Delivery } from '../../../src/features/webhooks/deliveries/delivery.js';
import {
  DEFAULT_DELIVERIES,
  DELIVERY_STATES,
  listDeliveries,
  MAX_DELIVERIES,
} from '../../../src/features/webhooks/deliveries/list-deliveries.js';
import { presentDelivery } from '../../../src/features/webhooks/present-webhook.js';
import { defineProjectCommand } from '../../ask/choose-project.js';
import { choice, option } from '../../shell/command.js';
import { wholeWithin } from '../../../src/config/setting-readers.js';
import { presentDeliveries, webhookArgument } from './present.js';

export default defineProjectCommand({
  details:
    'Newest first; delivered ones are kept for three days, failed ones as BSVC_KEEP says. --json shows every attempt with status, time and the beginning of the answer.',
  examples: [
    'bsvc webhook deliveries 665f1c2e9b1d8a0012ab34cd --project shop --state failed',
    'bsvc webhook deliveries 665f1c2e9b1d8a0012ab34cd --project shop --json',
  ],
  parameters: {
    webhookId: webhookArgument,
    state: choice<Delivery['state']>('--state <state>', 'only these', DELIVERY_STATES),
    limit: option(
      '--limit <n>',
      `how many, 1 to ${MAX_DELIVERIES} (default: ${DEFAULT_DELIVERIES})`,
      wholeWithin(1, MAX_DELIVERIES),
    ),
    before: option('--before <deliveryId>', 'those before this one: the next page'),
  },
  async run(context, { app, project, webhookId, limit = DEFAULT_DELIVERIES, ...query }) {
    const { items } = await listDeliveries(app, project, webhookId, { ...query, limit });
    return {
      json: items.map(presentDelivery),
      quiet: items.map(({ _id }) => _id),
      text: (view) => presentDeliveries(view, items),
    };
  },
});
