import { enableUser } from '../../../src/features/users/accounts/disable-user.js';
import { changeRoles } from '../../../src/features/users/accounts/user-roles.js';
import { requestReset } from '../../../src/features/users/factors/request-reset.js';
import { defineUserCommand } from '../../ask/choose-user.js';
import { flag, list } from '../../shell/command.js';
import { UsageError } from '../../view/exit.js';
import { presentUserResult } from './present.js';

export default defineUserCommand({
  details: [
    'Users read their roles as "roles" of their profile and cannot set them. Access rules may ask for them.',
    '--enable undoes "bsvc user disable"; the user signs in again.',
    '--reset-mfa is for a user who lost both second factor and recovery codes. It removes passkeys too, after the delay of the project (project update --mfa-reset-delay). The user is notified by email, and signing in with a factor cancels it.',
  ].join('\n'),
  examples: [
    'bsvc user update ann@example.com --project shop --add-role editor --remove-role trainee',
    'bsvc user update ann@example.com --project shop --enable',
    'bsvc user update ann@example.com --project shop --reset-mfa',
  ],
  audited: true,
  parameters: {
    enable: flag('--enable', 'open a disabled account again'),
    add: list('--add-role <role>', 'a further role (repeatable)'),
    remove: list('--remove-role <role>', 'a role to take away (repeatable)'),
    none: flag('--no-roles', 'take all roles away first'),
    resetMfa: flag('--reset-mfa', 'take MFA and passkeys off the account'),
  },
  async run(_context, { app, project, user, enable, add, remove, none, resetMfa }) {
    const both = add.find((role) => remove.includes(role));
    if (both !== undefined) throw new UsageError(`"${both}" is to be added and removed.`);
    const changesRoles = none || add.length + remove.length > 0;
    if (!changesRoles && !enable && !resetMfa) {
      throw new UsageError('Nothing to change: give --enable, --add-role, --remove-role, --no-roles or --reset-mfa.');
    }
    let changed = user;
    if (changesRoles) {
      changed = await changeRoles(app, project, user, (present) => [
        ...new Set([...(none ? [] : present.filter((role) => !remove.includes(role))), ...add]),
      ]);
    }
    if (enable) changed = await enableUser(app, project, user);
    if (resetMfa) changed = await requestReset(app, project, user);
    return presentUserResult(changed, 'is changed.');
  },
});
