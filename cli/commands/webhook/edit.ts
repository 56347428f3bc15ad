import type { App } from '../../../src/app.js';
import type { Project } from '../../../src/features/projects/project.js';
import { countDeliveries } from '../../../src/features/webhooks/deliveries/list-deliveries.js';
import { editWebhook } from '../../../src/features/webhooks/edit-webhook.js';
import { presentWebhook } from '../../../src/features/webhooks/present-webhook.js';
import { chooseProject, projectOption } from '../../ask/choose-project.js';
import { defineCommand, flag, list, option } from '../../shell/command.js';
import type { Context } from '../../shell/context.js';
import { UsageError } from '../../view/exit.js';
import { listAbsent, presentAbsent, presentState, readEvents, webhookArgument } from './present.js';

export default defineCommand({
  details:
    'What is already on its way goes to the new address. --disable gives up what still waits: it asks before, and "bsvc webhook replay" sends it later.',
  examples: [
    "bsvc webhook edit 665f1c2e9b1d8a0012ab34cd --project shop --events 'posts.*'",
    'bsvc webhook edit 665f1c2e9b1d8a0012ab34cd --project shop --enable',
  ],
  audited: true,
  destroys: 'at times',
  parameters: {
    webhookId: webhookArgument,
    project: projectOption,
    url: option('--url <url>', 'new address'),
    events: list('--events <events>', 'events to send instead, comma-separated (repeatable)'),
    description: option('--description <text>', 'what it is for'),
    enable: flag('--enable', 'send events again'),
    disable: flag('--disable', 'send no events'),
  },
  async run(context, { webhookId, project: named, url, events, description, enable, disable }) {
    if (enable && disable) throw new UsageError('Give either --enable or --disable, not both.');
    if (!enable && !disable && events.length === 0 && url === undefined && description === undefined) {
      throw new UsageError('Nothing to change: give --url, --events, --description, --enable or --disable.');
    }
    const { app, project } = await chooseProject(context, named);
    if (disable) await confirmGivingUp(context, app, project, webhookId);
    const webhook = await editWebhook(app, project, webhookId, {
      url,
      description,
      events: events.length > 0 ? readEvents(events) : undefined,
      enabled: enable ? true : disable ? false : undefined,
    });
    const absent = await listAbsent(app, project, webhook);
    return {
      json: { ...presentWebhook(webhook), absent },
      quiet: webhookId,
      text: () =>
        [
          `Webhook ${webhookId}: ${webhook.url}, ${webhook.events.join(', ')}, ${presentState(webhook)}.`,
          ...presentAbsent(absent),
        ].join('\n'),
    };
  },
});

/** Deliveries that wait fail with the webhook; nothing is asked where none does. */
async function confirmGivingUp(context: Context, app: App, project: Project, webhookId: string): Promise<void> {
  const { pending } = await countDeliveries(app, project, webhookId);
  if (pending === 0) return;
  const waiting = pending === 1 ? '1 delivery waits and fails' : `${pending} deliveries wait and fail`;
  await context.confirm({ what: `${waiting} with it.`, name: 'disable', reversible: true });
}
