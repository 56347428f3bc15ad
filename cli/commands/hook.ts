import { resolve } from 'node:path';
import type { App } from '../../src/app.js';
import { wholeWithin } from '../../src/config/setting-readers.js';
import { listCalls } from '../../src/features/hooks/call-log.js';
import {
  addAfter,
  addHook,
  listAfter,
  MAX_TIMEOUT_MS,
  MIN_TIMEOUT_MS,
  type NewHook,
  presentAfter,
  presentHook,
  removeAfter,
  removeHook,
} from '../../src/features/hooks/change-hooks.js';
import {
  runSchedule,
  addSchedule,
  presentSchedule,
  removeSchedule,
} from '../../src/features/hooks/change-schedules.js';
import { testHook } from '../../src/features/hooks/change-hooks.js';
import { setOwnEnv } from '../../src/features/projects/own-code.js';
import type { Project, ProjectHook } from '../../src/features/projects/project.js';
import { presentDelivery } from '../../src/features/webhooks/present-webhook.js';
import { defineProjectCommand } from '../ask/choose.js';
import { argument, choice, flag, list, option } from '../shell/command.js';
import { UsageError, refused } from '../view/exit.js';
import { presentList, presentWithSecret } from '../view/present.js';
import { listSchedules, MISSED, type Repetition } from '../../src/features/hooks/schedule.js';

const SHOWN_CALLS = 20;

const EVENTS = '<collection>.create, .update or .delete; after.<collection>.… runs after the event';

const eventArgument = argument('event', EVENTS);

const add = defineProjectCommand({
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
    url: option('--url <url>', 'https URL to call'),
    run: option('--run <file[#name]>', 'JavaScript file with the handler to call, for example ./hooks/orders.mjs'),
    env: list('--env <names>', 'environment variables that the project’s files can read, comma-separated (repeatable)'),
    onFailure: choice<ProjectHook['onFailure']>(
      '--on-failure <what>',
      'what happens to the request if the call fails (default: refuse)',
      ['refuse', 'allow'],
    ),
    timeoutMs: option(
      '--timeout <ms>',
      `how long to wait, ${MIN_TIMEOUT_MS} to ${MAX_TIMEOUT_MS} (default: 5000)`,
      wholeWithin(MIN_TIMEOUT_MS, MAX_TIMEOUT_MS),
    ),
    ifNotExists: flag('--if-not-exists', 'do nothing if the event has a hook'),
  },
  async run(_context, { app, project, run, env, ...input }) {
    const names = env.flatMap((each) => each.split(','));
    if (names.length > 0) await setOwnEnv(app, project, names);
    const path = run === undefined ? {} : { run: app.config.hooksDir === null ? resolve(run) : run };
    const { shown, secret, created } = await addForEvent(app, project, { ...input, ...path });
    const where = shown.url ?? shown.run;
    const lines = [created ? `${shown.event} calls ${where}.` : `${shown.event} has a hook already: ${where}.`];
    return presentWithSecret(shown, secret, { created }, lines);
  },
});

async function addForEvent(app: App, project: Project, input: NewHook) {
  if (!input.event.startsWith('after.')) {
    const { hook, ...added } = await addHook(app, project, input);
    return { ...added, shown: presentHook(app, project, hook) };
  }
  const { webhook, created } = await addAfter(app, project, input);
  return { shown: presentAfter(input.event, webhook), created, secret: null };
}

const listAll = defineProjectCommand({
  details:
    'Calls are kept for one day. --json shows the latest calls with status, time and the beginning of the response.',
  examples: ['bsvc hook list --project shop', 'bsvc hook list --project shop --json'],
  async run(_context, { app, project }) {
    const hooks = [
      ...(project.hooks ?? []).map((hook) => ({ _id: hook.id, ...presentHook(app, project, hook) })),
      ...(await listAfter(app, project)).map(({ event, ...each }) => ({ _id: each.id, ...presentAfter(event, each) })),
    ];
    const items = [];
    for (const { _id, ...shown } of hooks) {
      items.push({ ...shown, calls: (await listCalls(app, _id, SHOWN_CALLS)).map(presentDelivery) });
    }
    return {
      ...presentList(items, {
        name: ({ event }) => event,
        empty: 'No hooks yet. Add one with: bsvc hook add <event> --url <url>',
        head: ['event', 'calls', 'on failure', 'timeout', 'last call', 'last answer'],
        row: ({ event, url, run, onFailure, timeoutMs, calls }) => {
          const last = calls[0]?.attempts[0];
          return [event, url ?? run, onFailure, `${timeoutMs} ms`, last?.at, last && (last.error ?? last.status)];
        },
      }),
      json: items,
    };
  },
});

const remove = defineProjectCommand({
  details: 'Requests continue without it. Also deletes its call log.',
  examples: ['bsvc hook remove orders.create --project shop --yes'],
  audited: true,
  destroys: ({ event }) => ({ what: 'Removes the hook and the log of its calls.', name: event }),
  parameters: { event: eventArgument },
  async run(_context, { app, project, event }) {
    const json = event.startsWith('after.')
      ? presentAfter(event, await removeAfter(app, project, event))
      : presentHook(app, project, await removeHook(app, project, event));
    return { json, quiet: json.id, text: () => `The hook of ${event} is removed.` };
  },
});

/** Events are written with dots, schedules have a name without one. */
const isSchedule = (event: string): boolean => !event.includes('.');

const test = defineProjectCommand({
  details:
    'Calls a hook with a sample document, which is not stored, or runs a schedule immediately, and shows the response. Exits with 1 if the call fails; it is not retried.',
  examples: [
    'bsvc hook test orders.create --project shop',
    `bsvc hook test orders.create --project shop --document '{"quantity":2}'`,
    'bsvc hook test nightly --project shop',
  ],
  audited: ({ event }) => isSchedule(event),
  parameters: {
    event: argument('event', `${EVENTS}; or the name of a schedule`),
    document: option('--document <json>', 'document to pass to the hook', readDocument),
  },
  async run(_context, { app, project, event, document }) {
    if (isSchedule(event) && document) throw new UsageError('--document goes with an event, such as orders.create.');
    const { answer, error } = isSchedule(event)
      ? await runSchedule(app, project, event)
      : await testHook(app, project, event, document ?? {});
    return {
      json: { event, answer, error },
      quiet: error === null ? 'answered' : 'failed',
      text: () =>
        error !== null
          ? `${event}: failed.`
          : typeof answer === 'string'
            ? answer || `${event}: done.`
            : JSON.stringify(answer, null, 2),
      ...(error !== null && {
        failure: refused('HOOK_FAILED', `The hook failed: ${error}`),
      }),
    };
  },
});

function readDocument(text: string): Record<string, unknown> {
  const read: unknown = JSON.parse(text);
  if (typeof read === 'object' && read !== null && !Array.isArray(read)) return read as Record<string, unknown>;
  throw new Error('it must be a JSON object.');
}

const nameArgument = argument('name', 'name of the schedule');

const addTimed = defineProjectCommand({
  details: [
    'The expression has five fields: minute, hour, day, month, weekday. A local time that occurs twice runs once, at its first occurrence. A local time that is skipped runs at the end of the gap.',
    'Calls of an address are signed by the Standard Webhooks scheme; --quiet prints the secret for it.',
  ].join('\n'),
  examples: [
    "bsvc schedule add nightly --project shop --cron '0 3 * * *' --tz Europe/Berlin --url https://example.com/nightly",
    "bsvc schedule add digest --project shop --cron '*/15 * * * *' --run ./hooks/digest.mjs#digest --missed skip",
  ],
  audited: true,
  parameters: {
    name: nameArgument,
    cron: option('--cron <expression>', 'when it runs'),
    timeZone: option('--tz <zone>', 'time zone of the expression (default: UTC)'),
    url: option('--url <url>', 'https URL to call'),
    run: option('--run <file[#name]>', 'JavaScript file with the handler to call, for example ./hooks/digest.mjs'),
    missed: choice<Repetition['missed']>(
      '--missed <what>',
      'what to do about runs missed while the server was down (default: once)',
      MISSED,
    ),
    ifNotExists: flag('--if-not-exists', 'do nothing if one of that name exists'),
  },
  async run(context, { app, project, run, cron, ...input }) {
    const expression = cron ?? (await context.ask.text('Cron expression:', 'No time given: add --cron <expression>'));
    const path = run === undefined ? {} : { run: app.config.hooksDir === null ? resolve(run) : run };
    const { schedule, secret, created } = await addSchedule(app, project, { ...input, ...path, cron: expression });
    const shown = presentSchedule(app, schedule);
    const where = `${shown.url ?? shown.run}, next at ${shown.nextAt}`;
    const lines = [created ? `${shown.name} calls ${where}.` : `There is a schedule ${shown.name} already: ${where}.`];
    return presentWithSecret(shown, secret, { created }, lines);
  },
});

const listTimed = defineProjectCommand({
  details:
    'Calls are kept for one day. --json shows the latest calls with status, time and the beginning of the response.',
  examples: ['bsvc schedule list --project shop', 'bsvc schedule list --project shop --json'],
  async run(_context, { app, project }) {
    const schedules = [];
    for (const schedule of await listSchedules(app, project._id)) {
      const calls = (await listCalls(app, schedule._id, SHOWN_CALLS)).map(presentDelivery);
      schedules.push({ ...presentSchedule(app, schedule), calls });
    }
    return {
      ...presentList(schedules, {
        name: ({ name }) => name,
        empty: "No schedules yet. Add one with: bsvc schedule add <name> --cron '0 3 * * *' --url <url>",
        head: ['name', 'runs', 'calls', 'next run', 'last run', 'last error'],
        row: ({ name, cron, timeZone, url, run, nextAt, lastAt, lastError }) => [
          ...[name, `${cron} ${timeZone}`, url ?? run],
          ...[nextAt, lastAt, lastError],
        ],
      }),
      json: schedules,
    };
  },
});

const removeTimed = defineProjectCommand({
  details: 'Also deletes its call log.',
  examples: ['bsvc schedule remove nightly --project shop --yes'],
  audited: true,
  destroys: ({ name }) => ({ what: 'Removes the schedule and the log of its calls.', name }),
  parameters: { name: nameArgument },
  async run(_context, { app, project, name }) {
    const schedule = presentSchedule(app, await removeSchedule(app, project, name));
    return { json: schedule, quiet: schedule.id, text: () => `The schedule ${schedule.name} is removed.` };
  },
});

export default { add, list: listAll, remove, test };
export const scheduleCommands = { add: addTimed, list: listTimed, remove: removeTimed };
