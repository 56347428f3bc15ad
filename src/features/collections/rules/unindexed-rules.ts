import type { Collection } from '../collection.js';
import { keyPaths, parsedRules } from './collection-rules.js';
import { admitsAnyone, ID_PATH } from './rule.js';

/** Alternatives of the rule `read` whose documents no index finds, by what they ask first: more than have indexes. */
export function listUnindexedPaths(collection: Pick<Collection, 'rules'>): string[] {
  if (!collection.rules) return [];
  const { read } = parsedRules(collection.rules);
  if (admitsAnyone(read)) return [];
  const known = new Set([...keyPaths(collection), ID_PATH]);
  const firsts = read.alternatives.flatMap((conditions) => {
    const first = conditions.find((condition) => condition.kind === 'document');
    return first ? [first.path] : [];
  });
  return [...new Set(firsts)].filter((path) => !known.has(path));
}
