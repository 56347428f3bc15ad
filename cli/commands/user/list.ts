import type { App } from '../../../src/app.js';
import type { Project } from '../../../src/features/projects/project.js';
import { listIdentities, presentIdentity } from '../../../src/features/users/accounts/linked-identity.js';
import { listPasskeys } from '../../../src/features/users/accounts/passkey.js';
import { listRoles } from '../../../src/features/users/accounts/user-roles.js';
import type { User } from '../../../src/features/users/user.js';
import { requireUser } from '../../../src/features/users/user-store.js';
import { listUsers, presentAccount } from '../../../src/features/users/accounts/list-users.js';
import { defineProjectCommand } from '../../ask/choose-project.js';
import { option, optionalArgument } from '../../shell/command.js';
import type { Result } from '../../view/output.js';
import { wholeWithin } from '../../../src/config/setting-readers.js';

const DEFAULT_LIMIT = 50;

export default defineProjectCommand({
  details:
    'Newest first. With a user it shows this one. --json shows every field, never passwords; "bsvc user sessions" shows where a user is signed in.',
  examples: [
    'bsvc user list --project shop',
    'bsvc user list --project shop --email ann --limit 5 --json',
    'bsvc user list --project shop --search lovelace',
    'bsvc user list ann@example.com --project shop',
  ],
  parameters: {
    user: optionalArgument('user', 'id or e-mail address of a user'),
    email: option('--email <prefix>', 'only addresses that begin with this'),
    q: option('--search <text>', 'only with this id, or with this in one of their texts'),
    limit: option('--limit <n>', `how many (default: ${DEFAULT_LIMIT})`, wholeWithin(1, 999_999)),
    skip: option('--skip <n>', 'how many to leave out first', wholeWithin(0, 999_999)),
  },
  async run(context, { app, project, user: named, email, q, limit = DEFAULT_LIMIT, skip }) {
    if (named !== undefined) return presentUser(app, project, await requireUser(app, project._id, named));
    const { users, total } = await listUsers(app, project, { email, q, limit, skip });
    const accounts = users.map(presentAccount);
    context.out.note(`${accounts.length} of ${total} users`);
    return {
      json: accounts,
      quiet: accounts.map(({ _id }) => _id),
      text: (view) =>
        users.length === 0
          ? 'No users.'
          : view.table(
              ['id', 'e-mail', 'verified', 'state', 'created'],
              users.map((user, index) => [
                accounts[index]!._id,
                user.email ?? 'guest',
                user.emailVerified ? 'yes' : 'no',
                accounts[index]!.disabled ? 'disabled' : 'active',
                user.createdAt,
              ]),
            ),
    };
  },
});

async function presentUser(app: App, project: Project, user: User): Promise<Result> {
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
}
