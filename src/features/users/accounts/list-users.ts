import { ObjectId } from 'bson';
import type { App } from '../../../app.js';
import { invalid } from '../../../errors.js';
import type { Project } from '../../projects/project.js';
import { normaliseEmail } from '../credentials.js';
import { presentUser } from './present-user.js';
import { holding } from '../../../platform/database/database.js';
import { findObjectId } from '../../../platform/ids.js';
import { findCollection, requireCollection } from '../../collections/collection-store.js';
import { ROLES, rolesPlace, defaultUsersCollection, USERS } from '../../collections/users-collection.js';
import { HIDDEN_FIELD } from '../../collections/fields/field.js';
import { failList } from '../../documents/reply/query-errors.js';
import type { User } from '../user.js';
import { userStore } from '../user-store.js';

export interface UserQuery {
  /** Only addresses that start with this. */
  email?: string;
  /** Only users of this id, or with this text in the address or in one of their texts. Every user is looked at. */
  q?: string;
  /** Only users with this role. */
  role?: string;
  limit: number;
}

/** Texts of a user that a search looks into. */
const MAX_SEARCHED = 20;

/** Users of a project, newest first, and how many there are in all. 400 QUERY_TIMEOUT when a search takes too long. */
export async function listUsers(
  app: App,
  project: Project,
  query: UserQuery & { skip?: number },
): Promise<{ users: User[]; total: number }> {
  const filter = await filterOf(app, project, query);
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

/**
 * The users after the place that `cursor` names, newest first, and the cursor of those that follow; users who come or
 * go in between shift nothing. 400 INVALID_QUERY for a cursor that is none, QUERY_TIMEOUT as listUsers.
 */
export async function listUsersFrom(
  app: App,
  project: Project,
  query: UserQuery & { cursor?: string },
): Promise<{ users: User[]; nextCursor: string | null }> {
  const { cursor, limit } = query;
  const conditions = [await filterOf(app, project, query), ...(cursor === undefined ? [] : [afterCursor(cursor)])];
  const found = await userStore(app, project._id)
    .find({ $and: conditions }, { maxTimeMS: app.config.queryTimeoutMs })
    .sort({ createdAt: -1, _id: -1 })
    .limit(limit + 1)
    .toArray()
    .catch(failList);
  const users = found.slice(0, limit);
  return { users, nextCursor: found.length > limit ? cursorOf(users.at(-1)!) : null };
}

function cursorOf({ _id, createdAt }: User): string {
  return `${createdAt.getTime().toString(36)}.${_id.toHexString()}`;
}

function afterCursor(cursor: string): Record<string, unknown> {
  const [, moment, id] = /^([0-9a-z]{1,11})\.([0-9a-f]{24})$/.exec(cursor) ?? [];
  const createdAt = new Date(Number.parseInt(moment ?? '', 36));
  if (id === undefined || Number.isNaN(createdAt.getTime())) {
    throw invalid('INVALID_QUERY', 'cursor is not one of this list');
  }
  return { $or: [{ createdAt: { $lt: createdAt } }, { createdAt, _id: { $lt: new ObjectId(id) } }] };
}

async function filterOf(app: App, project: Project, { email, q, role }: UserQuery): Promise<Record<string, unknown>> {
  return {
    isDeleted: false,
    ...(email && { email: beginsWith(normaliseEmail(email)) }),
    ...(q && { $or: await findSearched(app, project, q) }),
    ...(role && (await withRole(app, project, role))),
  };
}

async function withRole(app: App, project: Project, role: string): Promise<Record<string, unknown>> {
  const { fields } = await requireCollection(app, project._id, USERS);
  const noted = { [`${HIDDEN_FIELD}.${ROLES}`]: role };
  if (rolesPlace(fields) === 'built in') return noted;
  return { $and: [{ $or: [{ [ROLES]: role }, { [ROLES]: null, ...noted }] }] };
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
  const { disabledAt, passwordHash, totp, mfaResetAt } = user[HIDDEN_FIELD];
  return {
    ...presentUser(user),
    disabled: disabledAt !== null,
    hasPassword: passwordHash !== null,
    ...((totp ?? mfaResetAt) && {
      mfa: { since: totp?.since.toISOString() ?? null, resetAt: mfaResetAt?.toISOString() ?? null },
    }),
  };
}
