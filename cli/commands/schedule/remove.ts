import { presentSchedule, removeSchedule } from '../../../src/features/hooks/change-schedules.js';
import { defineProjectCommand } from '../../ask/choose-project.js';
import { nameArgument } from './add.js';

export default defineProjectCommand({
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
