import { disableUser } from '../../../src/features/users/accounts/disable-user.js';
import { projectOption } from '../../ask/choose-project.js';
import { chooseUser, userArgument } from '../../ask/choose-user.js';
import { defineCommand } from '../../shell/command.js';
import { presentUserResult } from './present.js';

export default defineCommand({
  details: 'No sign-in, no refresh; tokens in use are refused within a second.',
  examples: ['bsvc user disable ann@example.com --project shop'],
  audited: true,
  parameters: { user: userArgument, project: projectOption },
  async run(context, input) {
    const { app, project, user } = await chooseUser(context, input);
    return presentUserResult(await disableUser(app, project, user), 'is disabled; all sessions have ended.');
  },
});
