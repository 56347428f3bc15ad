import type { App } from '../../../app.js';
import type { Project } from '../../projects/project.js';
import { normaliseEmail } from '../credentials.js';
import { presentUser } from './present-user.js';
import { HIDDEN_FIELD } from '../../collections/fields/field.js';
import type { User } from '../user.js';
import { userStore } from '../user-store.js';

export interface UserQuery {
  /** Only addresses that begin with this. */
  email?: string;
  limit: number;
  skip?: number;
}

/** Users of a project, newest first, and how many there are in all. */
export async function listUsers(
  app: App,
  project: Project,
  query: UserQuery,
): Promise<{ users: User[]; total: number }> {
  const filter = { isDeleted: false, ...(query.email && { email: beginsWith(normaliseEmail(query.email)) }) };
  const users = (await userStore(app, project._id)
    .find(filter)
    .sort({ createdAt: -1, _id: -1 })
    .skip(query.skip ?? 0)
    .limit(query.limit)
    .toArray()) as User[];
  return { users, total: await userStore(app, project._id).countDocuments(filter) };
}

/** A prefix as a range, which an index can answer. */
function beginsWith(prefix: string): { $gte: string; $lt: string } {
  return { $gte: prefix, $lt: `${prefix}\uffff` };
}

/** A user as the operator sees it: what the user sees, and whether the account may be used. */
export function presentAccount(user: User) {
  const { disabledAt, passwordHash } = user[HIDDEN_FIELD];
  return { ...presentUser(user), disabled: disabledAt !== null, hasPassword: passwordHash !== null };
}
