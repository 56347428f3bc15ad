import { listIdentities, presentIdentity } from '../../../src/features/users/accounts/linked-identity.js';
import { projectOption } from '../../ask/choose-project.js';
import { chooseUser, userArgument } from '../../ask/choose-user.js';
import { defineCommand } from '../../shell/command.js';

export default defineCommand({
  details: 'Each of them signs in to the account. Users unlink them by DELETE /api/userAuth/identities/:provider.',
  examples: ['bsvc user identities ann@example.com --project shop'],
  parameters: { user: userArgument, project: projectOption },
  async run(context, input) {
    const { app, project, user } = await chooseUser(context, input);
    const identities = (await listIdentities(app, project, user)).map(presentIdentity);
    return {
      json: identities,
      quiet: identities.map(({ provider }) => provider),
      text: (view) =>
        identities.length === 0
          ? 'No identity at a sign-in provider is linked.'
          : view.table(
              ['provider', 'linked'],
              identities.map(({ provider, linkedAt }) => [provider, linkedAt]),
            ),
    };
  },
});
