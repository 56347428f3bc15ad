import { presentJob, retryDeadJobs, retryJob } from '../../../src/platform/jobs/manage-jobs.js';
import { defineCommand, flag, optionalArgument, option } from '../../shell/command.js';
import { UsageError } from '../../view/exit.js';

export default defineCommand({
  details: 'Makes one dead or waiting job due at once, or with --dead all dead ones. Attempts start from zero.',
  examples: ['bsvc jobs retry 665f1c2e9b1d8a0012ab34cd', 'bsvc jobs retry --dead --name mail.deliver'],
  audited: true,
  parameters: {
    jobId: optionalArgument('jobId', 'id of the job ("bsvc jobs list" shows them)'),
    dead: flag('--dead', 'all dead jobs'),
    name: option('--name <name>', 'with --dead: only this kind'),
  },
  async run(context, { jobId, dead, name }) {
    if ((jobId === undefined) === !dead) throw new UsageError('Give either the id of a job or --dead.');
    const app = await context.app();
    if (jobId !== undefined) {
      const job = presentJob(await retryJob(app, jobId));
      return { json: job, quiet: job.id, text: () => `Job ${job.id} (${job.name}) is due now.` };
    }
    const retried = await retryDeadJobs(app, name);
    return {
      json: { retried },
      quiet: retried,
      text: () =>
        retried === 0 ? 'There are no dead jobs.' : `${retried} dead ${retried === 1 ? 'job is' : 'jobs are'} due now.`,
    };
  },
});
