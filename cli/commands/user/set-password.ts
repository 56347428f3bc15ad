import { setPassword } from '../../../src/features/users/accounts/set-password.js';
import { projectOption } from '../../ask/choose-project.js';
import { chooseUser, userArgument } from '../../ask/choose-user.js';
import { defineCommand, secret } from '../../shell/command.js';
import { readNewPassword } from '../../shell/read-secret.js';
import { presentUserResult } from './present.js';

export default defineCommand({
  details: 'Ends every session of the user.',
  examples: [
    'bsvc user set-password ann@example.com --project shop',
    'bsvc user set-password ann@example.com --project shop --password-stdin < password.txt',
  ],
  audited: true,
  parameters: { user: userArgument, project: projectOption, password: secret('password', 'the new password') },
  async run(context, input) {
    const { app, project, user } = await chooseUser(context, input);
    await setPassword(app, project, user, await readNewPassword(context, input.password, 'New password'));
    return presentUserResult(user, 'has a new password; all sessions have ended.');
  },
});
