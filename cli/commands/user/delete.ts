import { deleteUser } from '../../../src/features/users/accounts/delete-user.js';
import { nameOf } from '../../../src/features/users/user.js';
import { defineUserCommand } from '../../ask/choose-user.js';
import { presentUserResult } from './present.js';

export default defineUserCommand({
  details:
    'Documents of the user stay, except where a field says otherwise (onDelete). To only close the account use "bsvc user disable".',
  examples: [
    'bsvc user delete ann@example.com --project shop',
    'bsvc user delete ann@example.com --project shop --yes',
  ],
  audited: true,
  destroys: ({ user }) => ({ what: `Deletes the account ${nameOf(user)}.`, name: nameOf(user) }),
  async run(_context, { app, project, user }) {
    await deleteUser(app, project, user);
    return presentUserResult(user, 'is deleted.');
  },
});
