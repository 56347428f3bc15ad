import { setPassword } from '../../../src/features/users/accounts/set-password.js';
import { defineUserCommand } from '../../ask/choose-user.js';
import { secret } from '../../shell/command.js';
import { readNewPassword } from '../../shell/read-secret.js';
import { presentUserResult } from './present.js';

export default defineUserCommand({
  details: 'Ends every session of the user.',
  examples: [
    'bsvc user set-password ann@example.com --project shop',
    'bsvc user set-password ann@example.com --project shop --password-stdin < password.txt',
  ],
  audited: true,
  parameters: { password: secret('password', 'the new password') },
  async run(context, { app, project, user, password }) {
    await setPassword(app, project, user, await readNewPassword(context, password, 'New password'));
    return presentUserResult(user, 'has a new password; all sessions have ended.');
  },
});
