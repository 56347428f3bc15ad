import type { App } from '../../../app.js';
import { arrayOf, text } from '../../../platform/schema/schema.js';
import { requireCollection } from '../../collections/collection-store.js';
import { HIDDEN_FIELD, type Field } from '../../collections/fields/field.js';
import {
  MAX_ROLES,
  requireRolesPlace,
  ROLE_PATTERN,
  ROLES,
  rolesOf,
  rolesPlace,
  USERS,
} from '../../collections/users-collection.js';
import { Problems } from '../../documents/reply/problems.js';
import { commitWrite, type DecidedWrite } from '../../documents/store/commit-writes.js';
import { findListeners } from '../../webhooks/events/queue-events.js';
import { nextVersion } from '../../documents/store/document.js';
import { withValues } from '../../documents/store/service-change.js';
import type { Project } from '../../projects/project.js';
import type { User } from '../user.js';
import { userGone } from '../user-store.js';

/** Roles as a body brings them. */
export const ROLE_LIST = arrayOf(text({ pattern: ROLE_PATTERN, examples: ['editor'] }), {
  maxItems: MAX_ROLES,
  uniqueItems: true,
});

const ROLE = new RegExp(ROLE_PATTERN);

/** The roles of a user; none where the project keeps something else as `roles`. */
export async function listRoles(app: App, project: Project, user: User): Promise<readonly string[]> {
  const { fields } = await requireCollection(app, project._id, USERS);
  return rolesOf(fields, user);
}

/**
 * Gives a user the roles that `change` makes of the present ones, by one write; two changes at once both take effect.
 * 400 for what is no role, 409 ROLES_FIELD where the project keeps something else as `roles`, 404 when the user is
 * gone.
 */
export async function changeRoles(
  app: App,
  project: Project,
  { _id }: Pick<User, '_id'>,
  change: (present: readonly string[]) => readonly string[],
): Promise<User> {
  return (await commitWrite(app, await openRoles(app, project, { _id }, change))).after as User;
}

/** The decision of changeRoles, to be committed with others. */
export async function openRoles(
  app: App,
  project: Project,
  { _id }: Pick<User, '_id'>,
  change: (present: readonly string[]) => readonly string[],
): Promise<DecidedWrite> {
  const collection = await requireCollection(app, project._id, USERS);
  const { fields } = collection;
  requireRolesPlace(fields);
  const path = rolesPlace(fields) === 'built in' ? `${HIDDEN_FIELD}.${ROLES}` : ROLES;
  const listeners = await findListeners(app, collection, 'update');
  return {
    ...{ collection, id: _id, action: 'update', listeners },
    decide(stored) {
      if (stored?.isDeleted !== false) throw userGone();
      const problems = new Problems();
      const roles = readRoles(change(rolesOf(fields, stored)), problems);
      problems.throwIfAny();
      return nextVersion(app, collection, stored, withValues(stored, { [path]: roles }));
    },
  };
}

/**
 * Takes `roles` out of a body where they are built in; undefined when it has none. `present` are a user's own, which
 * may be sent back as they are; notes others where only the project `maySet` them, and what is no role.
 */
export function takeRoles(
  fields: readonly Field[],
  body: Record<string, unknown>,
  { maySet, present = [] }: { maySet: boolean; present?: readonly string[] },
  problems: Problems,
): string[] | undefined {
  if (!Object.hasOwn(body, ROLES) || rolesPlace(fields) !== 'built in') return undefined;
  const value = body[ROLES];
  delete body[ROLES];
  if (maySet) return readRoles(value, problems);
  const isSame =
    Array.isArray(value) && value.length === present.length && present.every((role, at) => role === value[at]);
  if (!isSame) problems.add('protected', 'cannot be set by users', ROLES);
  return undefined;
}

function readRoles(value: unknown, problems: Problems): string[] {
  const isList = Array.isArray(value) && value.length <= MAX_ROLES;
  if (isList && value.every((role) => typeof role === 'string' && ROLE.test(role))) {
    return [...new Set(value as string[])];
  }
  const form = 'a lower-case letter and up to 63 lower-case letters, digits, _, : or -';
  problems.add('format', `must be a list of at most ${MAX_ROLES} roles, each ${form}`, ROLES);
  return [];
}
