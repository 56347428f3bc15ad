import type { Document } from 'bson';
import { conflict } from '../../errors.js';
import { HIDDEN_FIELD, type Field } from './fields/field.js';

/** Field of `users` in which its roles are answered (accounts.md 3); never set by the user. */
export const ROLES = 'roles';

export const MAX_ROLES = 32;
/** The form of one role. */
export const ROLE_PATTERN = '^[a-z][a-z0-9_:-]{0,63}$';

/**
 * Where the roles of a project's users are kept: among the service's notes, or in a field `roles` of the project's own,
 * which users cannot set and which holds texts. Any other field of that name says nothing about roles.
 */
export type RolesPlace = 'built in' | 'own field' | 'none';

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
