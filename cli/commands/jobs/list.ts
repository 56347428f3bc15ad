import { JOB_STATES, listJobs, presentJob, type JobState } from '../../../src/platform/jobs/manage-jobs.js';
import { choice, defineCommand, value } from '../../shell/command.js';
import { wholeOption } from '../../shell/read-whole.js';

export default defineCommand({
  details: 'Jobs that are done are removed at once, except those of schedules.',
  examples: ['bsvc jobs list', 'bsvc jobs list --state dead --json'],
  parameters: {
    state: choice<JobState>('--state <state>', 'only these', JOB_STATES),
    name: value('--name <name>', 'only this kind, for example mail.deliver'),
    limit: value('--limit <n>', 'how many (default: 100)', wholeOption(1, 99_999)),
  },
  async run(context, query) {
    const jobs = (await listJobs(await context.app(), query)).map(presentJob);
    return {
      json: jobs,
      quiet: jobs.map(({ id }) => id),
      text: (view) =>
        jobs.length === 0
          ? 'No jobs.'
          : view.table(
              ['id', 'name', 'state', 'attempts', 'runs at', 'error'],
              jobs.map((job) => [job.id, job.name, job.state, job.attempts, job.runAt, job.error?.slice(0, 60)]),
            ),
    };
  },
});
