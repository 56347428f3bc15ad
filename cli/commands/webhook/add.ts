import { addWebhook, listAbsentCollections, parseTargetUrl } from '../../../src/features/webhooks/add-webhook.js';
import { chooseProject, projectOption } from '../../ask/choose-project.js';
import { defineCommand, flag, list, option } from '../../shell/command.js';
import type { Context } from '../../shell/context.js';
import { presentFound } from '../../view/present-found.js';
import { presentAbsent, readHeader, presentWithSecret, readEvents } from './present.js';

export default defineCommand({
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
    return presentWithSecret(webhook, secret, { created, ...(!created && { unmet }), absent }, [
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
