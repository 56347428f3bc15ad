import { nameOf } from '../../../src/features/users/user.js';
import { presentAccount } from '../../../src/features/users/accounts/list-users.js';
import type { User } from '../../../src/features/users/user.js';
import type { Result } from '../../view/output.js';

/** One user as the result of a command that changed it; `done` is the line for a person. */
export function presentUserResult(user: User, done: string): Result {
  const account = presentAccount(user);
  return { json: account, quiet: account._id, text: () => `${nameOf(user)} (${account._id}) ${done}` };
}
