import { nameOf } from '../../../src/features/users/user.js';
import { changeRoles, listRoles } from '../../../src/features/users/accounts/user-roles.js';
import { defineUserCommand } from '../../ask/choose-user.js';
import { flag, list } from '../../shell/command.js';
import { UsageError } from '../../view/exit.js';

export default defineUserCommand({
  details: 'Users read their roles as "roles" of their profile and cannot set them. Access rules may ask for them.',
  examples: [
    'bsvc user roles ann@example.com --project shop',
    'bsvc user roles ann@example.com --project shop --add editor --remove guest',
  ],
  audited: ({ add, remove, none }) => none || add.length + remove.length > 0,
  parameters: {
    add: list('--add <role>', 'a further role (repeatable)'),
    remove: list('--remove <role>', 'a role to take away (repeatable)'),
    none: flag('--none', 'take all roles away first'),
  },
  async run(_context, { app, project, user, add, remove, none }) {
    const both = add.find((role) => remove.includes(role));
    if (both !== undefined) throw new UsageError(`"${both}" is to be added and removed.`);
    const changes = none || add.length + remove.length > 0;
    const changed = changes
      ? await changeRoles(app, project, user, (present) => [
          ...new Set([...(none ? [] : present.filter((role) => !remove.includes(role))), ...add]),
        ])
      : user;
    const roles = await listRoles(app, project, changed);
    return {
      json: { _id: user._id.toHexString(), email: user.email, roles },
      quiet: [...roles],
      text: () => `${nameOf(user)}: ${roles.length === 0 ? 'no roles' : roles.join(', ')}`,
    };
  },
});
