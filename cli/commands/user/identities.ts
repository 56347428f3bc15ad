import { listIdentities, presentIdentity } from '../../../src/features/users/accounts/linked-identity.js';
import { projectOption } from '../../ask/choose-project.js';
import { chooseUser, userArgument } from '../../ask/choose-user.js';
import { defineCommand } from '../../shell/command.js';
import { presentList } from '../../shell/present-list.js';

export default defineCommand({
  details: 'Each of them signs in to the account. Users unlink them by DELETE /api/userAuth/identities/:provider.',
  examples: ['bsvc user identities ann@example.com --project shop'],
  parameters: { user: userArgument, project: projectOption },
  async run(context, input) {
    const { app, project, user } = await chooseUser(context, input);
    const identities = (await listIdentities(app, project, user)).map(presentIdentity);
    return presentList(identities, {
      name: ({ provider }) => provider,
      empty: 'No identity at a sign-in provider is linked.',
      head: ['provider', 'linked'],
      row: ({ provider, linkedAt }) => [provider, linkedAt],
    });
  },
});
