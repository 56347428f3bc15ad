import { listIdentities, presentIdentity } from '../../../src/features/users/accounts/linked-identity.js';
import { defineUserCommand } from '../../ask/choose-user.js';
import { presentList } from '../../view/present-list.js';

export default defineUserCommand({
  details: 'Each of them signs in to the account. Users unlink them by DELETE /api/userAuth/identities/:provider.',
  examples: ['bsvc user identities ann@example.com --project shop'],
  async run(context, { app, project, user }) {
    const identities = (await listIdentities(app, project, user)).map(presentIdentity);
    return presentList(identities, {
      name: ({ provider }) => provider,
      empty: 'No identity at a sign-in provider is linked.',
      head: ['provider', 'linked'],
      row: ({ provider, linkedAt }) => [provider, linkedAt],
    });
  },
});
