import { enableUser } from '../../../src/features/users/accounts/disable-user.js';
import { defineUserCommand } from '../../ask/choose-user.js';
import { presentUserResult } from './present.js';

export default defineUserCommand({
  details: 'Sessions that ended with disabling stay ended: the user signs in again.',
  examples: ['bsvc user enable ann@example.com --project shop'],
  audited: true,
  async run(context, { app, project, user }) {
    return presentUserResult(await enableUser(app, project, user), 'may sign in again.');
  },
});
