import { isDeepStrictEqual } from 'node:util';
import type { App } from '../../app.js';
import type { Collection, NamingCollection } from './collection.js';
import { collectionStore, saveCollection } from './collection-store.js';
import { addIndexes, applyIndexes } from './indexes/document-indexes.js';
import { findDeclared } from './rules/check-rules.js';
import { namedSets } from './rules/collection-rules.js';
import { beginEngineLog } from './rules/log-settings.js';
import { ID_PATH, type CallerSet } from './rules/rule.js';
import { requireNoRuleViolations } from './rules/rule-violations.js';

/**
 * Makes the collections ready of which rules name sets, before these rules are stored: what was named before stays. 409
 * RULE_VIOLATIONS for stored documents.
 */
export async function announceSets(app: App, from: Collection | null, to: Collection): Promise<void> {
  const sets = [...namedSets(to), ...(from ? namedSets(from) : [])];
  for (const name of new Set(sets.map(({ collection }) => collection))) {
    await noteSets(app, to, name, sets);
  }
}

/** Leaves to other collections no more than what the stored rules of this one name; none once it is gone. */
export async function applySets(app: App, saved: Collection): Promise<void> {
  const sets = saved.state === 'active' ? namedSets(saved) : [];
  const named = await collectionStore(app)
    .find({ projectId: saved.projectId, state: 'active', 'namedBy.collection': saved._id })
    .toArray();
  for (const { name } of named) await noteSets(app, saved, name, sets, true);
}

/** What the record of a new collection says of sets of its own. */
export function ownSets(collection: Collection): NamingCollection[] {
  return namingOf(collection._id, collection, namedSets(collection));
}

async function noteSets(
  app: App,
  { _id, projectId }: Collection,
  name: string,
  sets: readonly CallerSet[],
  isApplied = false,
): Promise<void> {
  for (;;) {
    const target = await collectionStore(app).findOne({ projectId, name, state: 'active' });
    if (!target) return;
    const { namedBy: known = [] } = target;
    const others = known.filter(({ collection }) => !collection.equals(_id));
    const namedBy = [...others, ...namingOf(_id, target, sets)];
    const noted = { ...target, namedBy };
    await requireNoRuleViolations(app, target, noted);
    await addIndexes(app, noted);
    if (isDeepStrictEqual(namedBy, known)) return;
    const saved = await saveCollection(app, target, { namedBy });
    if (!saved) continue;
    if (namedBy.length > 0) await beginEngineLog(app, saved);
    if (isApplied) await applyIndexes(app, saved);
    return;
  }
}

/** What `target` notes of a collection whose rules name these sets; nothing where none is one of its own. */
function namingOf(collection: NamingCollection['collection'], target: Collection, sets: readonly CallerSet[]) {
  const own = sets.filter((set) => set.collection === target.name);
  const keys = keysOf(target, own);
  const paths = own.flatMap(({ userPath, conditions, path }) => [
    userPath,
    ...conditions.map((each) => each.path),
    path,
  ]);
  const named = [...new Set(paths)].filter((path) => path !== ID_PATH);
  return keys.length > 0 ? [{ collection, keys, paths: named }] : [];
}

/** The fields of an index for each set of the collection: no more than one of them may be a list. */
function keysOf(target: Collection, sets: readonly CallerSet[]): string[][] {
  const isList = (path: string): boolean => {
    const found = findDeclared(target.fields, path.split('.'));
    return found !== null && (found.isInList || found.shape.type === 'Array');
  };
  const keys = sets
    .map(({ userPath, conditions, path }) => {
      const equalities = conditions.filter(({ asks }) => asks === 'equals').map((condition) => condition.path);
      const paths = [...new Set([userPath, ...equalities, path])].filter((each) => each !== ID_PATH);
      const [list] = paths.filter(isList);
      return paths.filter((each) => !isList(each) || each === list);
    })
    .filter((key) => key.length > 0);
  return [...new Map(keys.map((key) => [key.join(), key])).values()];
}
