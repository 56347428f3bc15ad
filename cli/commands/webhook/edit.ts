import type { App } from '../../../src/app.js';
import type { Project } from '../../../src/features/projects/project.js';
import { listAbsentCollections } from '../../../src/features/webhooks/add-webhook.js';
import { countDeliveries } from '../../../src/features/webhooks/deliveries/list-deliveries.js';
import { editWebhook } from '../../../src/features/webhooks/edit-webhook.js';
import { presentWebhook } from '../../../src/features/webhooks/present-webhook.js';
import { chooseProject, projectOption } from '../../ask/choose-project.js';
import { defineCommand, flag, list, option } from '../../shell/command.js';
import type { Context } from '../../shell/context.js';
import { UsageError } from '../../view/exit.js';
import { presentAbsent, readHeader, presentState, readEvents, webhookArgument } from './present.js';

export default defineCommand({
  details:
    'Waiting deliveries go to the new URL. With --disable, --keep sends them if you enable the webhook again within 30 days; --drop discards them, and "bsvc webhook replay" can send them later.',
  examples: [
    "bsvc webhook edit 665f1c2e9b1d8a0012ab34cd --project shop --events 'posts.*'",
    'bsvc webhook edit 665f1c2e9b1d8a0012ab34cd --project shop --enable',
  ],
  audited: true,
  destroys: 'at times',
  parameters: {
    webhookId: webhookArgument,
    project: projectOption,
    url: option('--url <url>', 'new URL'),
    events: list('--events <events>', 'events to send instead, comma-separated (repeatable)'),
    headers: list(
      '--header <name: value>',
      'header to send with each delivery, replaces the current ones, stored encrypted (repeatable)',
      readHeader,
    ),
    description: option('--description <text>', 'what it is for'),
    noHeaders: flag('--no-headers', 'remove the headers'),
    enable: flag('--enable', 'send events again'),
    disable: flag('--disable', 'send no events'),
    keep: flag('--keep', 'with --disable: send waiting deliveries when it is enabled again'),
    drop: flag('--drop', 'with --disable: discard waiting deliveries'),
  },
  async run(
    context,
    { webhookId, project: named, url, events, headers, noHeaders, description, enable, disable, keep, drop },
  ) {
    if (enable && disable) throw new UsageError('Give either --enable or --disable, not both.');
    if (keep && drop) throw new UsageError('Give either --keep or --drop, not both.');
    if ((keep || drop) && !disable) throw new UsageError('--keep and --drop go with --disable.');
    if (noHeaders && headers.length > 0) throw new UsageError('Give either --header or --no-headers, not both.');
    const isHeaders = noHeaders || headers.length > 0;
    const isOther = enable || disable || events.length > 0 || url !== undefined || description !== undefined;
    if (!isHeaders && !isOther) {
      throw new UsageError('Nothing to change: give --url, --events, --header, --description, --enable or --disable.');
    }
    const { app, project } = await chooseProject(context, named);
    if (disable && !keep && !drop) await confirmGivingUp(context, app, project, webhookId);
    const webhook = await editWebhook(app, project, webhookId, {
      url,
      description,
      events: events.length > 0 ? readEvents(events) : undefined,
      headers: isHeaders ? Object.fromEntries(headers) : undefined,
      enabled: enable ? true : disable ? false : undefined,
      waiting: keep ? 'keep' : disable ? 'drop' : undefined,
    });
    const absent = await listAbsentCollections(app, project, webhook.events);
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
  const what = `${waiting} with it. With --keep they wait until it is enabled again.`;
  await context.confirm({ what, name: 'disable', reversible: true });
}
