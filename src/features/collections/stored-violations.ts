import type { Document } from 'bson';
import type { App } from '../../app.js';
import { conflict, type AppError } from '../../errors.js';
import { documentsName, type Collection } from './collection.js';
import { requireNoConstraintViolations, Violations } from './fields/constraints/constraint-violations.js';
import { documentIndexes } from './indexes/document-indexes.js';
import { requireUnique } from './indexes/explain-duplicates.js';
import { isDeepStrictEqual } from 'node:util';
import { findObjectId } from '../../platform/ids.js';
import { findCollection } from './collection-store.js';
import { referencesOf, referenceText, type Reference } from './references/reference.js';

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

const BATCH = 500;

/**
 * 409 CONSTRAINT_VIOLATIONS with the number and ten ids when stored documents do not meet references that `to` begins
 * to check. Reads the active ones, in batches; changes nothing. What others store during it is not seen.
 */
async function requireNoReferenceViolations(app: App, from: Collection, to: Collection): Promise<void> {
  const known = referencesOf(from);
  const added = referencesOf(to).filter(
    ({ field, to, same }) =>
      !known.some((other) => other.field === field && other.to === to && isDeepStrictEqual(other.same, same)),
  );
  if (added.length === 0) return;
  const names = ['_id', ...added.flatMap(({ field, same }) => [field, ...same])];
  const projection = Object.fromEntries(names.map((name) => [name, 1]));
  const stored = app.db.collection<Document>(documentsName(to)).find({ isDeleted: false }, { projection });
  const found = new Violations();
  let batch: Document[] = [];
  const judge = async (): Promise<void> => {
    for (const [{ _id }, message] of await findViolations(app, to, added, batch)) found.add(String(_id), message);
    batch = [];
  };
  for await (const document of stored) {
    batch.push(document);
    if (batch.length === BATCH) await judge();
  }
  await judge();
  found.throwIfAny(to.name);
}

async function findViolations(
  app: App,
  to: Collection,
  references: readonly Reference[],
  documents: readonly Document[],
): Promise<Map<Document, string>> {
  const messages = new Map<Document, string>();
  for (const reference of references) {
    const { field, same } = reference;
    const valuesOf = (document: Document): unknown[] =>
      [document[field] as unknown].flat().filter((value) => value !== undefined && value !== null);
    const here = await findThere(app, to, reference, documents.flatMap(valuesOf));
    for (const document of documents) {
      const isHere = (value: unknown): boolean => {
        const target = here.get(value);
        return target !== undefined && same.every((name) => hasSame(target, document, name));
      };
      if (messages.has(document) || valuesOf(document).every(isHere)) continue;
      messages.set(document, `${field} ${referenceText(reference)}, in lower case`);
    }
  }
  return messages;
}

const hasSame = (target: Document, document: Document, name: string): boolean =>
  isDeepStrictEqual(target[name] ?? null, document[name] ?? null);

/** The active documents whose ids are among the values, by these. */
async function findThere(
  app: App,
  to: Collection,
  reference: Reference,
  values: unknown[],
): Promise<Map<unknown, Document>> {
  const texts = values.filter((value) => typeof value === 'string');
  const ids = texts.map(findObjectId).filter((id) => id !== null);
  const target = reference.to === to.name ? to : await findCollection(app, to.projectId, reference.to);
  if (!target || ids.length === 0) return new Map();
  const found = await app.db
    .collection<Document>(documentsName(target))
    .find({ _id: { $in: ids }, isDeleted: false })
    .project(Object.fromEntries(['_id', ...reference.same].map((name) => [name, 1])))
    .toArray();
  return new Map(found.map((document) => [String(document._id), document]));
}
