import { resolve } from 'node:path';
import { listCalls } from '../../src/features/hooks/call-log.js';
import { addSchedule, presentSchedule, removeSchedule } from '../../src/features/hooks/change-schedules.js';
import { listSchedules, MISSED, type Repetition } from '../../src/features/hooks/schedule.js';
import { presentDelivery } from '../../src/features/webhooks/present-webhook.js';
import { defineProjectCommand } from '../ask/choose-project.js';
import { argument, choice, flag, option } from '../shell/command.js';
import { presentList } from '../view/present-list.js';

const SHOWN_CALLS = 20;

const nameArgument = argument('name', 'name of the schedule');

const add = defineProjectCommand({
  details: [
    'The expression has five fields: minute, hour, day, month, weekday. Of a local time that occurs twice the first one counts; one that does not occur is the first moment after the gap.',
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
    url: option('--url <url>', 'https address that is called'),
    run: option('--run <file[#name]>', 'JavaScript file whose handler is called, ./hooks/digest.mjs'),
    missed: choice<Repetition['missed']>(
      '--missed <what>',
      'what becomes of times at which the service was off (default: once)',
      MISSED,
    ),
    ifNotExists: flag('--if-not-exists', 'do nothing when there is a schedule of that name'),
  },
  async run(context, { app, project, run, cron, ...input }) {
    const expression = cron ?? (await context.ask.text('Cron expression:', 'No time given: add --cron <expression>'));
    const path = run === undefined ? {} : { run: app.config.hooksDir === null ? resolve(run) : run };
    const { schedule, secret, created } = await addSchedule(app, project, { ...input, ...path, cron: expression });
    const shown = presentSchedule(app, schedule);
    const where = `${shown.url ?? shown.run}, next at ${shown.nextAt}`;
    const lines = [created ? `${shown.name} calls ${where}.` : `There is a schedule ${shown.name} already: ${where}.`];
    return {
      json: { ...shown, ...(secret && { secret }), created },
      quiet: secret ?? shown.id,
      text: () => (secret ? [...lines, '', `  ${secret}`, '', 'The secret is shown this once.'] : lines).join('\n'),
    };
  },
});

const listAll = defineProjectCommand({
  details: 'Calls are kept for a day; --json shows the last of each with status, time and the beginning of the answer.',
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

const remove = defineProjectCommand({
  details: 'The log of its calls goes too.',
  examples: ['bsvc schedule remove nightly --project shop --yes'],
  audited: true,
  destroys: ({ name }) => ({ what: 'Removes the schedule and the log of its calls.', name }),
  parameters: { name: nameArgument },
  async run(_context, { app, project, name }) {
    const schedule = presentSchedule(app, await removeSchedule(app, project, name));
    return { json: schedule, quiet: schedule.id, text: () => `The schedule ${schedule.name} is removed.` };
  },
});

export default { add, list: listAll, remove };
