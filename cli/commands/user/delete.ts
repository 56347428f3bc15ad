import { deleteUser } from '../../../src/features/users/accounts/delete-user.js';
import { projectOption } from '../../ask/choose-project.js';
import { chooseUser, userArgument } from '../../ask/choose-user.js';
import { defineCommand } from '../../shell/command.js';
import { confirmByName, requireConfirmable, yesOption } from '../../ask/confirm.js';
import { presentUserResult } from './present.js';

export default defineCommand({
  details: 'For good; documents that the user owns stay. To only close the account use "bsvc user disable".',
  examples: [
    'bsvc user delete ann@example.com --project shop',
    'bsvc user delete ann@example.com --project shop --yes',
  ],
  audited: true,
  parameters: { user: userArgument, project: projectOption, yes: yesOption },
  async run(context, input) {
    requireConfirmable(context, input.yes);
    const { app, project, user } = await chooseUser(context, input);
    await confirmByName(context, input.yes, `Deletes the account ${user.email}.`, user.email);
    await deleteUser(app, project, user);
    return presentUserResult(user, 'is deleted.');
  },
});
