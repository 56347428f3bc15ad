import { resolve } from 'node:path';
import {
  addAfter,
  addHook,
  MAX_TIMEOUT_MS,
  MIN_TIMEOUT_MS,
  type NewHook,
  presentAfter,
  presentHook,
} from '../../../src/features/hooks/change-hooks.js';
import { setOwnEnv } from '../../../src/features/projects/own-code.js';
import { wholeWithin } from '../../../src/config/setting-readers.js';
import type { App } from '../../../src/app.js';
import type { Project, ProjectHook } from '../../../src/features/projects/project.js';
import { defineProjectCommand } from '../../ask/choose-project.js';
import { argument, choice, flag, list, option } from '../../shell/command.js';

export const eventArgument = argument(
  'event',
  '<collection>.create, .update or .delete; after.<collection>.… hears of it afterwards',
);

export default defineProjectCommand({
  details: [
    'The code answers {"allow":true,"set":{…}} or {"allow":false,"status":422,"code":"…","message":"…"}; "set" fills fields declared @hook.',
    'Calls of an address are signed by the Standard Webhooks scheme; --quiet prints the secret for it.',
  ].join('\n'),
  examples: [
    'bsvc hook add orders.create --project shop --url https://example.com/orders',
    'bsvc hook add orders.delete --project shop --run ./hooks/orders.mjs --env STRIPE_KEY',
    'bsvc hook add after.orders.create --project shop --run ./hooks/orders.mjs',
    'bsvc hook add orders.update --project shop --url https://example.com/orders --on-failure allow --timeout 2000 --if-not-exists',
  ],
  audited: true,
  parameters: {
    event: eventArgument,
    url: option('--url <url>', 'https address that is called'),
    run: option('--run <file[#name]>', 'JavaScript file whose handler is called, ./hooks/orders.mjs'),
    env: list('--env <names>', 'variables that files of the project see, comma-separated (repeatable)'),
    onFailure: choice<ProjectHook['onFailure']>(
      '--on-failure <what>',
      'what becomes of the request then (default: refuse)',
      ['refuse', 'allow'],
    ),
    timeoutMs: option(
      '--timeout <ms>',
      `how long to wait, ${MIN_TIMEOUT_MS} to ${MAX_TIMEOUT_MS} (default: 5000)`,
      wholeWithin(MIN_TIMEOUT_MS, MAX_TIMEOUT_MS),
    ),
    ifNotExists: flag('--if-not-exists', 'do nothing when the event has a hook'),
  },
  async run(_context, { app, project, run, env, ...input }) {
    const names = env.flatMap((each) => each.split(','));
    if (names.length > 0) await setOwnEnv(app, project, names);
    const path = run === undefined ? {} : { run: app.config.hooksDir === null ? resolve(run) : run };
    const { shown, secret, created } = await add(app, project, { ...input, ...path });
    const where = shown.url ?? shown.run;
    const lines = [created ? `${shown.event} calls ${where}.` : `${shown.event} has a hook already: ${where}.`];
    return {
      json: { ...shown, ...(secret && { secret }), created },
      quiet: secret ?? shown.id,
      text: () => (secret ? [...lines, '', `  ${secret}`, '', 'The secret is shown this once.'] : lines).join('\n'),
    };
  },
});

async function add(app: App, project: Project, input: NewHook) {
  if (!input.event.startsWith('after.')) {
    const { hook, ...added } = await addHook(app, project, input);
    return { ...added, shown: presentHook(app, project, hook) };
  }
  const { webhook, created } = await addAfter(app, project, input);
  return { shown: presentAfter(input.event, webhook), created, secret: null };
}
