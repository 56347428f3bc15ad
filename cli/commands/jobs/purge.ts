import { parseDuration } from '../../../src/config/setting-readers.js';
import { purgeDeadJobs } from '../../../src/platform/jobs/manage-jobs.js';
import { defineCommand, option } from '../../shell/command.js';

export default defineCommand({
  details: 'Removes dead jobs; by themselves they go after 30 days.',
  examples: ['bsvc jobs purge --yes', 'bsvc jobs purge --older-than 7d --name mail.deliver --yes'],
  audited: true,
  destroys: () => ({ what: 'Removes dead jobs for good.', name: 'purge' }),
  parameters: {
    olderThan: option(
      '--older-than <duration>',
      'only those that have been dead so long, for example 7d',
      parseDuration,
    ),
    name: option('--name <name>', 'only this kind'),
  },
  async run(context, { olderThan = 0, name }) {
    const app = await context.app();
    const purged = await purgeDeadJobs(app, new Date(app.clock.now() - olderThan), name);
    return {
      json: { purged },
      quiet: purged,
      text: () =>
        purged === 0
          ? 'There are no such dead jobs.'
          : `${purged} dead ${purged === 1 ? 'job is' : 'jobs are'} removed.`,
    };
  },
});
