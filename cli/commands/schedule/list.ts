import { listCalls } from '../../../src/features/hooks/call-log.js';
import { presentSchedule } from '../../../src/features/hooks/change-schedules.js';
import { listSchedules } from '../../../src/features/hooks/schedule.js';
import { presentDelivery } from '../../../src/features/webhooks/present-webhook.js';
import { defineProjectCommand } from '../../ask/choose-project.js';
import { presentList } from '../../view/present-list.js';

const SHOWN_CALLS = 20;

export default defineProjectCommand({
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
