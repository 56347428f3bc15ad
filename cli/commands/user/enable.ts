import { enableUser } from '../../../src/features/users/accounts/disable-user.js';
import { projectOption } from '../../ask/choose-project.js';
import { chooseUser, userArgument } from '../../ask/choose-user.js';
import { defineCommand } from '../../shell/command.js';
import { presentUserResult } from './present.js';

export default defineCommand({
  details: 'Sessions that ended with disabling stay ended: the user signs in again.',
  examples: ['bsvc user enable ann@example.com --project shop'],
  audited: true,
  parameters: { user: userArgument, project: projectOption },
  async run(context, input) {
    const { app, project, user } = await chooseUser(context, input);
    return presentUserResult(await enableUser(app, project, user), 'may sign in again.');
  },
});
