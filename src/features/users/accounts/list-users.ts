import type { App } from '../../../app.js';
import type { Project } from '../../projects/project.js';
import { normaliseEmail } from '../credentials.js';
import { presentUser } from './present-user.js';
import { holding } from '../../../platform/database/holding.js';
import { findObjectId } from '../../../platform/ids.js';
import { findCollection } from '../../collections/collection-store.js';
import { defaultUsersCollection, USERS } from '../../collections/users-collection.js';
import { HIDDEN_FIELD } from '../../collections/fields/field.js';
import { failList } from '../../documents/reply/query-errors.js';
import type { User } from '../user.js';
import { userStore } from '../user-store.js';

export interface UserQuery {
  /** Only addresses that begin with this. */
  email?: string;
  /** Only users of this id, or with this text in the address or in one of their texts. Every user is looked at. */
  q?: string;
  limit: number;
  skip?: number;
}

/** Texts of a user that a search looks into. */
const MAX_SEARCHED = 20;

/** Users of a project, newest first, and how many there are in all. 400 QUERY_TIMEOUT when a search takes too long. */
export async function listUsers(
  app: App,
  project: Project,
  query: UserQuery,
): Promise<{ users: User[]; total: number }> {
  const filter = {
    isDeleted: false,
    ...(query.email && { email: beginsWith(normaliseEmail(query.email)) }),
    ...(query.q && { $or: await findSearched(app, project, query.q) }),
  };
  const maxTimeMS = app.config.queryTimeoutMs;
  const users = await userStore(app, project._id)
    .find(filter, { maxTimeMS })
    .sort({ createdAt: -1, _id: -1 })
    .skip(query.skip ?? 0)
    .limit(query.limit)
    .toArray()
    .catch(failList);
  return { users, total: await userStore(app, project._id).countDocuments(filter, { maxTimeMS }).catch(failList) };
}

async function findSearched(app: App, project: Project, text: string): Promise<object[]> {
  const { fields } = (await findCollection(app, project._id, USERS)) ?? defaultUsersCollection(project._id);
  const names = fields.filter(({ name, type }) => type === 'String' && name !== 'password').map(({ name }) => name);
  const id = findObjectId(text);
  return [
    ...names.slice(0, MAX_SEARCHED).map((name) => ({ [name]: holding(text.trim()) })),
    ...(id ? [{ _id: id }] : []),
  ];
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
