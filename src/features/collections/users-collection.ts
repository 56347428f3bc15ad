import type { ObjectId, Document } from 'bson';
import { invalid, conflict } from '../../errors.js';
import type { Collection } from './collection.js';
import { type Field, HIDDEN_FIELD } from './fields/field.js';

/** Field of `users` in which its roles are answered (accounts.md 3); never set by the user. */
export const ROLES = 'roles';

export const MAX_ROLES = 32;
/** The form of one role. */
export const ROLE_PATTERN = '^[a-z][a-z0-9_:-]{0,63}$';

/**
 * Where the roles of a project's users are kept: among the service's notes, or in a field `roles` of the project's own,
 * which users cannot set and which holds texts. Any other field of that name says nothing about roles.
 */
type RolesPlace = 'built in' | 'own field' | 'none';

/** The place of roles in `users` with these fields. */
export function rolesPlace(fields: readonly Field[]): RolesPlace {
  const own = fields.find(({ name }) => name === ROLES);
  if (!own) return 'built in';
  return own.protected && own.type === 'Array' && own.items?.type === 'String' ? 'own field' : 'none';
}

/** The roles of a stored user of `users` with these fields; none when the project keeps something else as `roles`. */
export function rolesOf(fields: readonly Field[], user: Document): readonly string[] {
  const place = rolesPlace(fields);
  if (place === 'none') return [];
  const own: unknown = place === 'own field' ? user[ROLES] : undefined;
  const kept: unknown = own ?? (user[HIDDEN_FIELD] as { roles?: unknown } | undefined)?.roles;
  return Array.isArray(kept) ? kept.filter((role): role is string => typeof role === 'string') : [];
}

/** 409 ROLES_FIELD, with the command that mends it, where the project keeps something else as `roles`. */
export function requireRolesPlace(fields: readonly Field[]): void {
  if (rolesPlace(fields) !== 'none') return;
  throw conflict(
    'ROLES_FIELD',
    "The field roles of users is the service's own: declare it as texts that users cannot set (bsvc collection edit users --set-field 'roles:Array(String)@protected'), or drop it (bsvc collection edit users --drop-field roles)",
  );
}

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
export function findExposedFields(collection: Pick<Collection, 'name' | 'fields'>): string[] {
  if (collection.name !== USERS) return [];
  return collection.fields.filter((field) => !field.protected && TELLING_NAME.test(field.name)).map(({ name }) => name);
}

const refusal = (message: string): Error => invalid('USERS_CONTRACT', message);
