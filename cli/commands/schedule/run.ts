import { runSchedule } from '../../../src/features/hooks/change-schedules.js';
import { defineProjectCommand } from '../../ask/choose-project.js';
import { EXIT } from '../../view/exit.js';
import { nameArgument } from './add.js';

export default defineProjectCommand({
  details: 'Its times stay as they are. Exit 1 when the call fails; it is not tried again.',
  examples: ['bsvc schedule run nightly --project shop'],
  audited: true,
  parameters: { name: nameArgument },
  async run(_context, { app, project, name }) {
    const { answer, error } = await runSchedule(app, project, name);
    return {
      json: { name, answer, error },
      quiet: error === null ? 'answered' : 'failed',
      text: () => (error === null ? answer || `${name}: done.` : `${name}: failed.`),
      ...(error !== null && {
        failure: { exitCode: EXIT.refused, code: 'HOOK_FAILED', message: `The schedule failed: ${error}` },
      }),
    };
  },
});
