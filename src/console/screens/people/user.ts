import type { ApiSchemas } from '../../api-routes.js';

/** An end user as operators see it; further fields are those of the project's collection `users`. */
export type User = ApiSchemas['Account'];

const BUILT_IN = new Set([
  ...['_id', 'email', 'emailVerified', 'disabled', 'hasPassword', 'createdAt', 'updatedAt', 'roles', 'mfa'],
]);

/** What the project keeps of a user. */
export const ownFields = (user: User): Record<string, unknown> =>
  Object.fromEntries(Object.entries(user).filter(([name]) => !BUILT_IN.has(name)));

/** Text as a JSON object, or why it is none. */
export function readFields(json: string): { fields: Record<string, unknown> } | { problem: string } {
  if (json.trim() === '') return { fields: {} };
  try {
    const fields: unknown = JSON.parse(json);
    if (typeof fields === 'object' && fields !== null && !Array.isArray(fields)) {
      return { fields: fields as Record<string, unknown> };
    }
    return { problem: 'Further fields are a JSON object, such as {"name": "Ada"}' };
  } catch (error) {
    return { problem: `This is not JSON: ${(error as Error).message}` };
  }
}

/** The fields that were changed; one that was taken away becomes null. */
export function changedFields(stored: Record<string, unknown>, typed: Record<string, unknown>) {
  const names = new Set([...Object.keys(stored), ...Object.keys(typed)]);
  return Object.fromEntries(
    [...names].flatMap((name) =>
      JSON.stringify(stored[name]) === JSON.stringify(typed[name]) ? [] : [[name, typed[name] ?? null]],
    ),
  );
}
