import { wholeWithin } from '../../src/config/setting-readers.js';
import {
  JOB_STATES,
  listJobs,
  presentJob,
  retryDeadJobs,
  retryJob,
  type JobState,
} from '../../src/platform/jobs/manage-jobs.js';
import { choice, defineCommand, option } from '../shell/command.js';
import { UsageError } from '../view/exit.js';
import { presentList } from '../view/present.js';

export default defineCommand({
  details: [
    'Lists waiting, running and failed jobs. Finished jobs are removed immediately; schedules keep the latest for a while.',
    '--retry runs a failed (dead) or waiting job now, or all dead ones. Attempts start from zero.',
  ].join('\n'),
  examples: [
    'bsvc jobs',
    'bsvc jobs --state dead --json',
    'bsvc jobs --retry 665f1c2e9b1d8a0012ab34cd',
    'bsvc jobs --retry dead --name mail.deliver',
  ],
  audited: ({ retry }) => retry !== undefined,
  parameters: {
    state: choice<JobState>('--state <state>', 'only jobs in this state', JOB_STATES),
    name: option('--name <name>', 'only this kind, for example mail.deliver'),
    limit: option('--limit <n>', 'how many (default: 100)', wholeWithin(1, 99_999)),
    retry: option('--retry <id|dead>', 'retry this job, or all dead ones'),
  },
  async run(context, { retry, ...query }) {
    if (retry !== undefined && (query.state ?? query.limit) !== undefined) {
      throw new UsageError('--retry takes no --state and no --limit.');
    }
    const app = await context.app();
    if (retry === undefined) {
      return presentList((await listJobs(app, query)).map(presentJob), {
        name: ({ id }) => id,
        empty: 'No jobs.',
        head: ['id', 'name', 'state', 'attempts', 'runs at', 'error'],
        row: (job) => [job.id, job.name, job.state, job.attempts, job.runAt, job.error?.slice(0, 60)],
      });
    }
    if (retry !== 'dead') {
      const job = presentJob(await retryJob(app, retry));
      return { json: job, quiet: job.id, text: () => `Job ${job.id} (${job.name}) is due now.` };
    }
    const retried = await retryDeadJobs(app, query.name);
    return {
      json: { retried },
      quiet: retried,
      text: () =>
        retried === 0 ? 'There are no dead jobs.' : `${retried} dead ${retried === 1 ? 'job is' : 'jobs are'} due now.`,
    };
  },
});
