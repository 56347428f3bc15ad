import type { ApiSchemas } from '../api-routes.js';

/** A document as the operators' API answers it. */
export type ShownFields = ApiSchemas['ShownDocument'];

/** Kept by the server: shown, never sent. */
export const OF_SERVER: ReadonlySet<string> = new Set(['_id', 'isDeleted', 'deletedAt', 'createdAt', 'updatedAt']);

export function fieldsOf(document: ShownFields | null): Record<string, unknown> {
  return Object.fromEntries(Object.entries(document ?? {}).filter(([name]) => !OF_SERVER.has(name)));
}

/**
 * Only what was changed is sent, so that others' changes to other fields stay; a field that was taken out becomes null.
 */
export function differences(before: Record<string, unknown>, after: Record<string, unknown>): Record<string, unknown> {
  const changed = Object.entries(after).filter(
    ([name, value]) => JSON.stringify(value) !== JSON.stringify(before[name]),
  );
  const gone = Object.keys(before).filter((name) => !Object.hasOwn(after, name));
  return Object.fromEntries([...changed, ...gone.map((name) => [name, null] as const)]);
}

export const writeFields = (fields: Record<string, unknown>): string => JSON.stringify(fields, null, 2);
