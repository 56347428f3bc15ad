import { nameOf } from '../../../src/features/users/user.js';
import { requestReset } from '../../../src/features/users/factors/request-reset.js';
import { presentAccount } from '../../../src/features/users/accounts/list-users.js';
import { defineUserCommand } from '../../ask/choose-user.js';
import { flag } from '../../shell/command.js';

export default defineUserCommand({
  details:
    'Shows whether sign-ins ask for a code. --reset takes it off for a user who has lost it: after the delay of the project (project update --mfa-reset-delay), of which the user is told by mail and which signing in with a code stops. Sessions end then.',
  examples: ['bsvc user mfa ann@example.com --project shop', 'bsvc user mfa ann@example.com --project shop --reset'],
  audited: ({ reset }) => reset,
  parameters: {
    reset: flag('--reset', 'take the second factors off the account'),
  },
  async run(_context, { app, project, user, reset }) {
    const { mfa } = presentAccount(reset ? await requestReset(app, project, user) : user);
    const { since = null, resetAt = null } = mfa ?? {};
    return {
      json: { _id: user._id.toHexString(), email: user.email, since, resetAt },
      quiet: since ?? '',
      text: () => {
        if (since === null) return `${nameOf(user)}: no second factor`;
        return `${nameOf(user)}: second factor since ${since}${resetAt === null ? '' : `, reset at ${resetAt}`}`;
      },
    };
  },
});
