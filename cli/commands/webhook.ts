import type { App } from '../../src/app.js';
import { wholeWithin } from '../../src/config/setting-readers.js';
import type { Project } from '../../src/features/projects/project.js';
import {
  addWebhook,
  listAbsentCollections,
  parseTargetUrl,
  listWebhooks,
} from '../../src/features/webhooks/add-webhook.js';
import type { Delivery } from '../../src/features/webhooks/deliveries/delivery.js';
import {
  DEFAULT_DELIVERIES,
  DELIVERY_STATES,
  MAX_DELIVERIES,
  countDeliveries,
  listDeliveries,
} from '../../src/features/webhooks/deliveries/list-deliveries.js';
import { replayDelivery, testWebhook } from '../../src/features/webhooks/deliveries/try-again.js';
import { editWebhook, removeWebhook } from '../../src/features/webhooks/edit-webhook.js';
import { presentDelivery, presentWebhook } from '../../src/features/webhooks/present-webhook.js';
import { rotateSecret, type Webhook } from '../../src/features/webhooks/webhook-store.js';
import { chooseProject, defineProjectCommand, projectOption } from '../ask/choose.js';
import { argument, choice, defineCommand, flag, list, option } from '../shell/command.js';
import type { Context } from '../shell/context.js';
import { UsageError, refused } from '../view/exit.js';
import type { TextStyle } from '../view/output.js';
import { presentFound, presentList, presentWithSecret } from '../view/present.js';

const webhookArgument = argument('webhookId', 'id of the webhook ("bsvc webhook list" shows them)');

/** Splits `posts.insert,posts.update`; the option may also be repeated. */
function readEvents(given: readonly string[]): string[] {
  return given.flatMap((text) => text.split(',')).map((event) => event.trim());
}

function presentAbsent(names: readonly string[]): string[] {
  return names.map((name) => `There is no collection ${name} yet: its events come once there is one.`);
}

export function presentState(webhook: Webhook): string {
  if (webhook.disabled) return `disabled (${webhook.disabled}${webhook.keepsWaiting ? ', keeps what waits' : ''})`;
  return webhook.failingSince ? `failing since ${webhook.failingSince.toISOString()}` : 'active';
}

function presentDeliveries(view: TextStyle, deliveries: readonly Delivery[]): string {
  if (deliveries.length === 0) return 'No deliveries.';
  return view.table(
    ['id', 'event', 'state', 'attempts', 'last answer', 'created', 'document'],
    deliveries.map(presentDelivery).map((delivery) => {
      const last = delivery.attempts.at(-1);
      return [
        delivery.id,
        delivery.event,
        delivery.state,
        delivery.attempts.length,
        last?.error ?? last?.status,
        delivery.createdAt,
        delivery.documentId,
      ];
    }),
  );
}

/** A header as curl takes it: `Name: value`. */
export function readHeader(text: string): [name: string, value: string] {
  const at = text.indexOf(':');
  if (at < 1) throw new Error('it must be "Name: value".');
  return [text.slice(0, at).trim(), text.slice(at + 1).trim()];
}

const add = defineCommand({
  details: [
    'An event is <collection>.insert, .update, .delete or .recover; <collection>.*, *.<action> and * stand for several.',
    'Deliveries are signed by the Standard Webhooks scheme; --quiet prints the secret for it.',
  ].join('\n'),
  examples: [
    'bsvc webhook add --project shop --url https://example.com/hooks --events posts.insert,posts.update',
    "bsvc webhook add --project shop --url https://example.com/hooks --events '*' --if-not-exists",
  ],
  audited: true,
  parameters: {
    project: projectOption,
    url: option('--url <url>', 'https URL that receives the events'),
    events: list('--events <events>', 'events to send, comma-separated (repeatable)'),
    headers: list(
      '--header <name: value>',
      'header to send with each delivery, stored encrypted (repeatable)',
      readHeader,
    ),
    description: option('--description <text>', 'what it is for'),
    strict: flag('--strict', 'reject events of unknown collections'),
    ifNotExists: flag('--if-not-exists', 'do nothing if one with that address exists'),
  },
  async run(context, { project: named, url, events, headers, description, strict, ifNotExists }) {
    const check = (answer: string): true | string => judgeUrl(context, answer);
    const target =
      url ?? (await context.ask.text('Address of the receiver:', 'No address given: add --url <url>', { check }));
    const wanted =
      events.length > 0
        ? events
        : [
            await context.ask.text(
              'Events to send (posts.insert, posts.*, *):',
              'No events given: add --events, for example --events posts.insert',
            ),
          ];
    const { app, project } = await chooseProject(context, named);
    const input = {
      url: target,
      events: readEvents(wanted),
      headers: Object.fromEntries(headers),
      description,
      strict,
      ifNotExists,
    };
    const { webhook, secret, created, unmet } = await addWebhook(app, project, input);
    const thing = `Webhook ${webhook.id.toHexString()} for ${webhook.url}`;
    const found = presentFound(thing, unmet, `Change it with "bsvc webhook edit ${webhook.id.toHexString()}".`);
    const absent = await listAbsentCollections(app, project, webhook.events);
    return presentWithSecret(presentWebhook(webhook), secret, { created, ...(!created && { unmet }), absent }, [
      created ? `${thing} is registered.` : found,
      ...presentAbsent(absent),
    ]);
  },
});

function judgeUrl(context: Context, answer: string): true | string {
  try {
    parseTargetUrl(context.settings().config, answer);
    return true;
  } catch (error) {
    return `${(error as Error).message}.`;
  }
}

const listAll = defineProjectCommand({
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

const edit = defineCommand({
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

const remove = defineProjectCommand({
  details: 'Also deletes its delivery log. Waiting deliveries are not sent.',
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

const replaceSecret = defineProjectCommand({
  details: 'For 24 hours deliveries are signed with the old and the new secret, so that the receiver can switch.',
  examples: [
    'bsvc webhook rotate-secret 665f1c2e9b1d8a0012ab34cd --project shop',
    'SECRET=$(bsvc webhook rotate-secret 665f1c2e9b1d8a0012ab34cd --project shop --quiet)',
  ],
  audited: true,
  parameters: { webhookId: webhookArgument },
  async run(context, { app, project, webhookId }) {
    const { webhook, secret, previousExpiresAt } = await rotateSecret(app, project, webhookId);
    const end = previousExpiresAt.toISOString();
    return presentWithSecret(presentWebhook(webhook), secret, { previousSecretExpiresAt: end }, [
      `Webhook ${webhookId} has a new secret; the old one signs too until ${end}.`,
    ]);
  },
});

const test = defineProjectCommand({
  details:
    'Sends the event test.ping once and waits up to ten seconds for the response. Exits with 1 if it was not accepted.',
  examples: [
    'bsvc webhook test 665f1c2e9b1d8a0012ab34cd --project shop',
    'bsvc webhook deliveries 665f1c2e9b1d8a0012ab34cd --project shop --limit 1',
  ],
  parameters: { webhookId: webhookArgument },
  async run(context, { app, project, webhookId }) {
    const delivery = await testWebhook(app, project, webhookId);
    const attempt = delivery.attempts[0]!;
    return {
      json: presentDelivery(delivery),
      quiet: delivery.state,
      text: () => `test.ping: ${delivery.state}${attempt.status === null ? '' : ` (${attempt.status})`}.`,
      ...(attempt.error && {
        failure: refused('NOT_DELIVERED', `Not delivered: ${attempt.error}`),
      }),
    };
  },
});

const deliveries = defineProjectCommand({
  details:
    'Newest first. Successful deliveries are kept for three days, failed ones as long as BSVC_KEEP sets. --json shows every attempt with status, time and the beginning of the response.',
  examples: [
    'bsvc webhook deliveries 665f1c2e9b1d8a0012ab34cd --project shop --state failed',
    'bsvc webhook deliveries 665f1c2e9b1d8a0012ab34cd --project shop --json',
  ],
  parameters: {
    webhookId: webhookArgument,
    state: choice<Delivery['state']>('--state <state>', 'only deliveries in this state', DELIVERY_STATES),
    limit: option(
      '--limit <n>',
      `how many, 1 to ${MAX_DELIVERIES} (default: ${DEFAULT_DELIVERIES})`,
      wholeWithin(1, MAX_DELIVERIES),
    ),
    before: option('--before <deliveryId>', 'start before this one, for the next page'),
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

const replay = defineProjectCommand({
  details:
    'The worker sends it again with the same webhook-id and new attempts. You can replay a successful delivery for one day, and a failed one as long as it is kept.',
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

export default { add, list: listAll, edit, remove, test, deliveries, replay, 'rotate-secret': replaceSecret };
