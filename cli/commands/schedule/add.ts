import { resolve } from 'node:path';
import { addSchedule, presentSchedule } from '../../../src/features/hooks/change-schedules.js';
import { MISSED, type Repetition } from '../../../src/features/hooks/schedule.js';
import { defineProjectCommand } from '../../ask/choose-project.js';
import { argument, choice, flag, option } from '../../shell/command.js';

export const nameArgument = argument('name', 'name of the schedule');

export default defineProjectCommand({
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
    const where = shown.url ?? shown.run;
    const next = `next at ${shown.nextAt}`;
    const lines = [
      created
        ? `${shown.name} calls ${where}, ${next}.`
        : `There is a schedule ${shown.name} already: ${where}, ${next}.`,
    ];
    return {
      json: { ...shown, ...(secret && { secret }), created },
      quiet: secret ?? shown.id,
      text: () => (secret ? [...lines, '', `  ${secret}`, '', 'The secret is shown this once.'] : lines).join('\n'),
    };
  },
});
