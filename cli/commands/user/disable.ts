import { disableUser } from '../../../src/features/users/accounts/disable-user.js';
import { defineUserCommand } from '../../ask/choose-user.js';
import { presentUserResult } from './present.js';

export default defineUserCommand({
  details: 'No sign-in, no refresh; tokens in use are refused within a second.',
  examples: ['bsvc user disable ann@example.com --project shop'],
  audited: true,
  async run(context, { app, project, user }) {
    return presentUserResult(await disableUser(app, project, user), 'is disabled; all sessions have ended.');
  },
});
