import { nameOf } from '../../../src/features/users/user.js';
import { listPasskeys } from '../../../src/features/users/accounts/passkey.js';
import { requestReset } from '../../../src/features/users/factors/request-reset.js';
import { presentAccount } from '../../../src/features/users/accounts/list-users.js';
import { defineUserCommand } from '../../ask/choose-user.js';
import { flag } from '../../shell/command.js';

export default defineUserCommand({
  details:
    'Shows whether sign-ins ask for a code, and how many passkeys there are. --reset takes both off for a user who has lost them: after the delay of the project (project update --mfa-reset-delay), of which the user is told by mail and which signing in with one of them stops. Sessions end then.',
  examples: ['bsvc user mfa ann@example.com --project shop', 'bsvc user mfa ann@example.com --project shop --reset'],
  audited: ({ reset }) => reset,
  parameters: {
    reset: flag('--reset', 'take the second factors off the account, passkeys too'),
  },
  async run(_context, { app, project, user, reset }) {
    const account = reset ? await requestReset(app, project, user) : user;
    const passkeys = (await listPasskeys(app, project, account)).length;
    const { since = null, resetAt = null } = presentAccount(account).mfa ?? {};
    return {
      json: { _id: user._id.toHexString(), email: user.email, since, passkeys, resetAt },
      quiet: since ?? '',
      text: () => {
        const factors = [
          since === null ? 'no second factor' : `second factor since ${since}`,
          ...(passkeys === 0 ? [] : [`${passkeys} ${passkeys === 1 ? 'passkey' : 'passkeys'}`]),
          ...(resetAt === null ? [] : [`reset at ${resetAt}`]),
        ];
        return `${nameOf(user)}: ${factors.join(', ')}`;
      },
    };
  },
});
