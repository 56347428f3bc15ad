import { JOB_STATES, listJobs, presentJob, type JobState } from '../../../src/platform/jobs/manage-jobs.js';
import { choice, defineCommand, option } from '../../shell/command.js';
import { presentList } from '../../view/present-list.js';
import { wholeWithin } from '../../../src/config/setting-readers.js';

export default defineCommand({
  details:
    'Jobs that wait, run or failed. Those that are done are removed at once; schedules keep the latest for a while.',
  examples: ['bsvc jobs list', 'bsvc jobs list --state dead --json', 'bsvc jobs list --state done'],
  parameters: {
    state: choice<JobState>('--state <state>', 'only these', JOB_STATES),
    name: option('--name <name>', 'only this kind, for example mail.deliver'),
    limit: option('--limit <n>', 'how many (default: 100)', wholeWithin(1, 99_999)),
  },
  async run(context, query) {
    const jobs = (await listJobs(await context.app(), query)).map(presentJob);
    return presentList(jobs, {
      name: ({ id }) => id,
      empty: 'No jobs.',
      head: ['id', 'name', 'state', 'attempts', 'runs at', 'error'],
      row: (job) => [job.id, job.name, job.state, job.attempts, job.runAt, job.error?.slice(0, 60)],
    });
  },
});
