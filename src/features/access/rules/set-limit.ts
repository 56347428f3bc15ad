import { rulesOf, type CollectionAccess } from '../../collections/rules/collection-rules.js';
import type { Caller } from '../caller.js';

/** The number of membership sets that one request may use. */
export const MAX_SETS = 4;

/**
 * Whether the rules of the collections use more membership sets than one request may (rules.md 14). Always false for
 * secret keys. `trash` includes the rule `delete`.
 */
export function exceedsSetLimit(
  collections: readonly CollectionAccess[],
  { key }: Pick<Caller, 'key'>,
  trash: boolean,
): boolean {
  if (key.type === 'secret') return false;
  const rules = collections.map(rulesOf).flatMap(({ read, delete: remove }) => (trash ? [read, remove] : [read]));
  return new Set(rules.flatMap(({ sets }) => sets.map(({ text }) => text))).size > MAX_SETS;
}
