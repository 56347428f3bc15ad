import { listUsers, presentAccount } from '../../../src/features/users/accounts/list-users.js';
import { defineProjectCommand } from '../../ask/choose-project.js';
import { option } from '../../shell/command.js';
import { wholeWithin } from '../../../src/config/setting-readers.js';

const DEFAULT_LIMIT = 50;

export default defineProjectCommand({
  details: 'Newest first. --json shows every field, never passwords.',
  examples: [
    'bsvc user list --project shop',
    'bsvc user list --project shop --email ann --limit 5 --json',
    'bsvc user list --project shop --search lovelace',
  ],
  parameters: {
    email: option('--email <prefix>', 'only addresses that begin with this'),
    q: option('--search <text>', 'only with this id, or with this in one of their texts'),
    limit: option('--limit <n>', `how many (default: ${DEFAULT_LIMIT})`, wholeWithin(1, 999_999)),
    skip: option('--skip <n>', 'how many to leave out first', wholeWithin(0, 999_999)),
  },
  async run(context, { app, project, email, q, limit = DEFAULT_LIMIT, skip }) {
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
