import { listIdentities, presentIdentity } from '../../../src/features/users/accounts/linked-identity.js';
import { presentAccount } from '../../../src/features/users/accounts/list-users.js';
import { listPasskeys } from '../../../src/features/users/accounts/passkey.js';
import { listRoles } from '../../../src/features/users/accounts/user-roles.js';
import { defineUserCommand } from '../../ask/choose-user.js';

export default defineUserCommand({
  details: '--json shows every field, never passwords. "bsvc user sessions" shows where the user is signed in.',
  examples: ['bsvc user show ann@example.com --project shop', 'bsvc user show ann@example.com --project shop --json'],
  async run(_context, { app, project, user }) {
    const account = presentAccount(user);
    const roles = await listRoles(app, project, user);
    const identities = (await listIdentities(app, project, user)).map(presentIdentity);
    const passkeys = (await listPasskeys(app, project, user)).length;
    const { since = null, resetAt = null } = account.mfa ?? {};
    return {
      json: { ...account, roles, identities, passkeys },
      quiet: account._id,
      text: (view) =>
        view.table(
          ['property', 'value'],
          [
            ['id', account._id],
            ['e-mail', user.email ?? 'anonymous'],
            ['verified', user.emailVerified ? 'yes' : 'no'],
            ['state', account.disabled ? 'disabled' : 'active'],
            ['roles', roles.join(', ') || 'none'],
            ['MFA', since === null ? 'off' : `since ${since}`],
            ['MFA reset', resetAt === null ? 'none' : `at ${resetAt}`],
            ['passkeys', passkeys],
            ['identities', identities.map(({ provider }) => provider).join(', ') || 'none'],
            ['created', user.createdAt],
          ],
        ),
    };
  },
});
