import { rulesOf, type CollectionAccess } from '../../collections/rules/collection-rules.js';
import type { Caller } from '../caller.js';

/** Each set is read whole for the request, or asked about one value. */
export const MAX_SETS = 4;

/**
 * Whether reading the collections, each by its own rules, asks about more sets than one request may (rules.md 14);
 * never for the secret key. With `trash` the rule `delete` is asked too.
 */
export function asksTooManySets(
  collections: readonly CollectionAccess[],
  { key }: Pick<Caller, 'key'>,
  trash: boolean,
): boolean {
  if (key.type === 'secret') return false;
  const rules = collections.map(rulesOf).flatMap(({ read, delete: remove }) => (trash ? [read, remove] : [read]));
  return new Set(rules.flatMap(({ sets }) => sets.map(({ text }) => text))).size > MAX_SETS;
}
