import type { Document } from 'bson';
import type { App } from '../../app.js';
import { conflict, type AppError } from '../../errors.js';
import { documentsName, type Collection } from './collection.js';
import { requireNoConstraintViolations } from './fields/constraints/constraint-violations.js';
import { documentIndexes } from './indexes/document-indexes.js';
import { requireUnique } from './indexes/explain-duplicates.js';
import { requireNoReferenceViolations } from './references/reference-violations.js';

/** 409 CONSTRAINT_VIOLATIONS for documents that break constraints or references that `changed` adds. */
export async function requireConstraints(app: App, current: Collection, changed: Collection): Promise<void> {
  await requireNoConstraintViolations(app, current, changed);
  await requireNoReferenceViolations(app, current, changed);
}

/**
 * Refuses what changeCollection would refuse for the documents that are stored: constraints and references that they
 * break, values that are not unique, indexes that they keep from being built. Reads documents; changes nothing.
 */
export async function requireNoViolations(
  app: App,
  current: Collection,
  changed: Collection,
  { forNewWrites = false }: { forNewWrites?: boolean } = {},
): Promise<void> {
  if (!forNewWrites) await requireConstraints(app, current, changed);
  const textOf = ({ key, unique, name }: ReturnType<typeof documentIndexes>[number]): string =>
    JSON.stringify([key, unique === true && name]);
  const known = documentIndexes(current).map(textOf);
  for (const index of documentIndexes(changed)) {
    const { key, unique } = index;
    if (known.includes(textOf(index))) continue;
    if (unique) await requireUnique(app, current, changed, index);
    const reason = await findIndexViolation(app, changed, key);
    if (reason !== undefined) throw indexRefused(changed, reason);
  }
}

/** Why stored documents would keep an index from being built; undefined where they do not. */
async function findIndexViolation(
  app: App,
  collection: Collection,
  key: Record<string, 1 | -1 | '2dsphere'>,
): Promise<string | undefined> {
  const isThere = async (filter: Document): Promise<boolean> =>
    (await app.db.collection(documentsName(collection)).findOne(filter, { projection: { _id: 1 } })) !== null;
  const paths = Object.keys(key).filter((path) => !OWN_PATHS.has(path));
  for (const [at, path] of paths.entries()) {
    if (key[path] === '2dsphere' && (await isThere({ [path]: { $exists: true, $ne: null }, $nor: pointsAt(path) }))) {
      return INDEX_ERRORS.get(16_755);
    }
    for (const other of paths.slice(at + 1)) {
      if (await isThere({ [path]: { $type: 'array' }, [other]: { $type: 'array' } })) return INDEX_ERRORS.get(171);
    }
  }
  return undefined;
}

/** Paths of the service's own, which hold one value. */
const OWN_PATHS: ReadonlySet<string> = new Set(['_id', 'createdAt', 'updatedAt', 'deletedAt', 'isDeleted']);

/** The forms of a point: GeoJSON, and a pair of numbers. */
function pointsAt(path: string): Document[] {
  const numbers = (at: string): Document => ({ [`${at}.0`]: { $type: 'number' }, [`${at}.1`]: { $type: 'number' } });
  return [{ [`${path}.type`]: 'Point', ...numbers(`${path}.coordinates`) }, numbers(path)];
}

/** 409 INDEX_REFUSED, with what stored documents have that keeps an index from being built. */
export function indexRefused({ name }: Collection, reason: string, cause?: unknown): AppError {
  return conflict('INDEX_REFUSED', `The database refuses the indexes of "${name}": ${reason}`, { cause });
}

/** Why indexes cannot be built, by the database's code. */
export const INDEX_ERRORS = new Map<unknown, string>([
  [67, 'a sharded collection can keep nothing unique but its shard key'],
  [16_755, 'some document has something else than a point in a field with an index of places'],
  [171, 'some document holds arrays in more than one of the fields of one index'],
]);
