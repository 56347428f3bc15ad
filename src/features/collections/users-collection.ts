import type { ObjectId } from 'bson';
import { invalid } from '../../errors.js';
import type { Collection } from './collection.js';
import type { Field } from './fields/field.js';
import { requireRolesPlace } from './user-roles.js';

/** Name of the collection of end users; reserved, and closed to `/api/data` in every spelling (rest-api.md 2.6). */
export const USERS = 'users';

/** Kept by the service beside the schema's fields; only the secret key may set it. */
export const EMAIL_VERIFIED = 'emailVerified';

const EMAIL: Field = { name: 'email', type: 'String', required: true, unique: true };
/** The email of users whose public profile shows it. */
export const PUBLIC_EMAIL: Field = { ...EMAIL, public: true };
const PASSWORD: Field = { name: 'password', type: 'String', required: true };

/** The fields of users until a project edits them. */
export const defaultUserFields = (): Field[] => [EMAIL, PASSWORD, { name: 'name', type: 'String' }];

/**
 * The `users` collection until a project edits it (decision 1); it exists from the start and is stored only then.
 * Its id is the project's, so that its documents have a place before there is a record. `name` is there because signup
 * offers it (rest-api.md 4.1); a project may drop it.
 */
export function defaultUsersCollection(projectId: ObjectId): Collection {
  const createdAt = projectId.getTimestamp();
  return {
    _id: projectId,
    projectId,
    name: USERS,
    mode: 'enforced',
    fields: defaultUserFields(),
    rls: null,
    isPublic: false,
    indexes: [],
    version: 0,
    state: 'active',
    createdAt,
    updatedAt: createdAt,
  };
}

/** 400 unless a changed `users` keeps the fixed contract of rest-api.md 2.6; other collections pass. */
export function checkUsersContract(
  collection: Pick<Collection, 'name' | 'mode' | 'fields' | 'rls' | 'isPublic'>,
): void {
  if (collection.name !== USERS) return;
  if (collection.mode !== 'enforced') throw refusal('The users collection always enforces its schema');
  if (collection.rls || collection.isPublic) {
    throw refusal('The users collection has no access settings: it is reached through /api/userAuth only');
  }
  for (const fixed of [EMAIL, PASSWORD]) {
    const field = collection.fields.find(({ name }) => name === fixed.name);
    const kept =
      field?.type === 'String' && field.required && !field.protected && Boolean(field.unique) === Boolean(fixed.unique);
    if (!kept) throw refusal('The users collection always has email:String!& and password:String!');
    if (field.public && fixed === PASSWORD) throw refusal('A password cannot be public');
  }
  if (collection.fields.some(({ name }) => name === EMAIL_VERIFIED)) {
    throw refusal(`${EMAIL_VERIFIED} is kept by the service and cannot be declared`);
  }
  requireRolesPlace(collection.fields);
}

/**
 * The collection as its documents really are: users are stored without `password` and with `emailVerified`. Others as
 * they stand.
 */
export function asStored(collection: Collection): Collection {
  if (collection.name !== USERS) return collection;
  const fields = collection.fields.filter(({ name }) => name !== PASSWORD.name);
  return { ...collection, fields: [...fields, { name: EMAIL_VERIFIED, type: 'Boolean', required: true }] };
}

const TELLING_NAME =
  /^(is)?_?(admin|superuser|staff|owner|moderator)$|^(role|permissions?|scopes?|plan|tier|credits?|balance|quota|banned|verified|approved|premium|stripe.*id)$/i;

/**
 * Fields of `users` that any end user could set on itself although their names tell that they grant something
 * (decisions.md 2): worth a warning.
 */
export function findTellingFields(collection: Pick<Collection, 'name' | 'fields'>): string[] {
  if (collection.name !== USERS) return [];
  return collection.fields.filter((field) => !field.protected && TELLING_NAME.test(field.name)).map(({ name }) => name);
}

const refusal = (message: string): Error => invalid('USERS_CONTRACT', message);
