import type { IndexDescription } from 'mongodb';
import type { App } from '../../../app.js';
import { documentsName, type Collection } from '../collection.js';
import { keyPaths, parsedRules } from '../rules/collection-rules.js';
import { admitsNobody } from '../rules/rule.js';
import { WRITTEN_BY } from '../fields/field.js';
import { comparedPath } from '../fields/nocase.js';
import { sha256Hex } from '../../../platform/ids.js';
import { readUnique, type Unique } from '../fields/unique.js';

/** Lists look at active documents only, so their indexes hold nothing else: smaller, and a count needs no document. */
const ACTIVE = { isDeleted: false };
/** Trashed documents, few as a rule, for lists with `include_deleted` and for the job that removes them. */
const TRASHED = { isDeleted: true };

type Named = IndexDescription & { name: string; key: Record<string, 1 | -1 | '2dsphere'> };

type Settings = Pick<Collection, 'mode' | 'fields' | 'rls' | 'rules' | 'indexes' | 'uniques' | 'expire' | 'namedBy'>;

/** MongoDB holds 64 indexes of a collection, that of `_id` among them. */
export const MAX_STORED_INDEXES = 63;

/**
 * The indexes that a collection's schema, RLS and requests ask for, each key once. A name says the purpose and stands
 * for one key.
 */
export function documentIndexes(collection: Settings): Named[] {
  const indexes = [...requiredIndexes(collection), ...ownerIndexes(collection), ...trashIndexes(collection)];
  return withoutTwins(indexes).slice(0, MAX_STORED_INDEXES);
}

/** Those of documentIndexes that have to be there, however many they are. */
export function requiredIndexes(collection: Settings): Named[] {
  const indexes: Named[] = [
    { name: 'active_createdAt', key: { createdAt: -1, _id: -1 }, partialFilterExpression: ACTIVE },
    { name: 'trash_deletedAt', key: { deletedAt: 1 }, partialFilterExpression: TRASHED },
  ];
  if (collection.rls) {
    const { ownerField } = collection.rls;
    indexes.push({
      name: `owner_${ownerField}`,
      key: { [ownerField]: 1, createdAt: -1, _id: -1 },
      partialFilterExpression: ACTIVE,
    });
  }
  if (collection.rules && !admitsNobody(parsedRules(collection.rules).create)) {
    indexes.push({ name: 'written_by', key: { [WRITTEN_BY]: 1 }, sparse: true });
  }
  for (const path of keyPaths(collection)) {
    indexes.push({
      name: `rule_${path}`,
      key: { [path]: 1, createdAt: -1, _id: -1 },
      partialFilterExpression: ACTIVE,
    });
  }
  for (const key of (collection.namedBy ?? []).flatMap(({ keys }) => keys)) {
    indexes.push({
      name: `set_${key.join(',')}`,
      key: Object.fromEntries(key.map((path) => [path, 1])),
      partialFilterExpression: ACTIVE,
    });
  }
  for (const field of collection.fields) {
    if (field.unique && collection.mode === 'enforced') indexes.push(uniqueIndex(collection, [field.name]));
  }
  if (collection.mode === 'enforced') {
    indexes.push(...(collection.uniques ?? []).map((unique) => uniqueIndex(collection, unique)));
  }
  for (const field of collection.mode === 'enforced' ? collection.fields : []) {
    if ((field.items ?? field).onDelete === undefined) continue;
    // Of trashed documents too: they are taken back with what they refer to.
    indexes.push({ name: `ref_${field.name}`, key: { [field.name]: 1, isDeleted: 1, _id: 1 } });
  }
  // That of createdAt is there already.
  if (collection.expire && collection.expire.field !== 'createdAt') {
    const { field } = collection.expire;
    indexes.push({ name: `expire_${field}`, key: { [field]: 1 }, partialFilterExpression: ACTIVE });
  }
  for (const spec of collection.indexes) {
    const place = placesField(spec);
    if (place !== null) {
      // Of trashed documents too: `include_deleted` of a pipeline must find an index as well.
      indexes.push({ name: `geo_${place}`, key: { [place]: '2dsphere' } });
      continue;
    }
    const stored = storedSpec(collection, spec);
    indexes.push({ name: `list_${stored}`, key: requestedKey(stored), partialFilterExpression: ACTIVE });
    if (givesOrder(collection, spec)) {
      indexes.push({ name: `sort_${stored}`, key: sortKey(stored), partialFilterExpression: ACTIVE });
    }
  }
  return withoutTwins(indexes);
}

/** The field of `field:2dsphere`, an index of places; null for any other. */
export function placesField(spec: string): string | null {
  return spec.endsWith(PLACES) ? spec.slice(0, -PLACES.length) : null;
}

const PLACES = ':2dsphere';

/** The database takes no two indexes of the same key, and what begins with `_id` is served by its own. */
function withoutTwins(indexes: readonly Named[]): Named[] {
  return indexes.filter((index, at) => Object.keys(index.key)[0] !== '_id' && !isAmong(indexes.slice(0, at), index));
}

/** One index may have had another name, of another purpose or version: what it is for the database is its key. */
function isSame(a: Named, b: Named): boolean {
  if (a.unique || b.unique) return a.name === b.name;
  return JSON.stringify(a.key) === JSON.stringify(b.key);
}

/**
 * The indexes behind the owner field of a private collection, or behind the first field of its rules: an end user's
 * lists always ask for their own documents (decision 10).
 */
function ownerIndexes(collection: Settings): Named[] {
  const { rls, indexes } = collection;
  const [ruled] = keyPaths(collection);
  const own = rls?.mode === 'private' ? rls.ownerField : ruled;
  if (own === undefined) return [];
  const purpose = rls ? 'own' : 'rule';
  const behindOwner = (name: string, key: Record<string, 1 | -1 | '2dsphere'>): Named => ({
    name,
    key: { [own]: 1, ...key },
    partialFilterExpression: ACTIVE,
  });
  const served = indexes.filter(
    (spec) => placesField(spec) === null && !readParts(spec).some(([path]) => path === own),
  );
  return [
    ...served
      .map((spec) => storedSpec(collection, spec))
      .map((spec) => behindOwner(`${purpose}_${own}:${spec}`, requestedKey(spec))),
    ...served
      .filter((spec) => givesOrder(collection, spec))
      .map((spec) => storedSpec(collection, spec))
      .map((spec) => behindOwner(`${purpose}_sort_${own}:${spec}`, sortKey(spec))),
  ];
}

/**
 * What lists with trashed documents read besides the active ones, those of one owner too. The other way round than the
 * indexes of active documents, whose keys they may not have; read backwards they are the same.
 */
function trashIndexes({ rls }: Settings): Named[] {
  const trashIndex = (name: string, key: Record<string, 1>): Named => ({
    name: `trash_${name}`,
    key: { ...key, createdAt: 1, _id: 1 },
    partialFilterExpression: TRASHED,
  });
  return [trashIndex('createdAt', {}), ...(rls ? [trashIndex(rls.ownerField, { [rls.ownerField]: 1 })] : [])];
}

/** True for a single field by which a list can be sorted by an index: an array has an entry for each of its items. */
function givesOrder({ fields }: Settings, spec: string): boolean {
  if (spec.includes(',')) return false;
  const [[path]] = readParts(spec) as [[string, 1 | -1]];
  return fields.find(({ name }) => name === path)?.type !== 'Array';
}

/**
 * Unique among active documents that have all of the fields (decisions.md 3, writes.md 2). Two dots, which no field
 * has, part the fields of a name from what stands for its condition.
 */
function uniqueIndex(collection: Settings, unique: Unique): Named {
  const { fields: names, where } = readUnique(unique);
  const fields = names.map((name) => comparedPath(collection, name));
  const condition = Object.keys(where).length > 0 ? `..${sha256Hex(JSON.stringify(where)).slice(0, 12)}` : '';
  return {
    name: `unique_${fields.join(',')}${condition}`,
    key: Object.fromEntries(fields.map((field) => [field, 1 as const])),
    unique: true,
    partialFilterExpression: {
      ...ACTIVE,
      ...Object.fromEntries(fields.map((field) => [field, { $exists: true }])),
      ...where,
    },
  };
}

/** A requested index by the stored paths of its fields; one name then never stands for two keys. */
function storedSpec(collection: Settings, spec: string): string {
  const parts = readParts(spec).map(
    ([path, direction]) => `${direction === 1 ? '' : '-'}${comparedPath(collection, path)}`,
  );
  return parts.join(',');
}

/**
 * `country` serves filters on it in the default order; `country,-population` is taken as written. Ties are broken by
 * `_id` like every list.
 */
function requestedKey(spec: string): Record<string, 1 | -1> {
  const parts = readParts(spec);
  if (parts.length === 1) return { [parts[0]![0]]: parts[0]![1], createdAt: -1, _id: -1 };
  return sortKey(spec);
}

/** Serves lists sorted as written, and the other way round. */
function sortKey(spec: string): Record<string, 1 | -1> {
  const parts = readParts(spec);
  return { ...Object.fromEntries(parts), _id: parts.at(-1)![1] };
}

function readParts(spec: string): [string, 1 | -1][] {
  return spec.split(',').map((part): [string, 1 | -1] => (part.startsWith('-') ? [part.slice(1), -1] : [part, 1]));
}

/**
 * Makes the stored indexes those that `collection` asks for: creates what is missing, then drops what is no longer
 * wanted. Throws the duplicate key error of a unique index that cannot be built.
 */
export async function applyIndexes(app: Pick<App, 'db'>, collection: Collection): Promise<void> {
  await addIndexes(app, collection);
  const wanted = documentIndexes(collection);
  const unwanted = (await listStored(app, collection)).filter((index) => !isAmong(wanted, index));
  await dropIndexes(app, collection, unwanted);
}

/** applyIndexes that keeps unwanted indexes, unless there is no room for both: then those that are not unique go. */
export async function addIndexes(app: Pick<App, 'db'>, collection: Collection, attempts = 5): Promise<void> {
  const wanted = documentIndexes(collection);
  const stored = await listStored(app, collection);
  const missing = wanted.filter((index) => !isAmong(stored, index));
  if (stored.length + missing.length > MAX_STORED_INDEXES) {
    const dispensable = stored.filter((index) => !index.unique && !isAmong(wanted, index));
    await dropIndexes(app, collection, dispensable);
  }
  const present = stored.map(({ name }) => name);
  const named = wanted.filter((index) => missing.includes(index) || present.includes(index.name));
  try {
    await app.db.createIndexes(documentsName(collection), named);
  } catch (error) {
    if (attempts === 1 || !RACED.has((error as { code?: unknown }).code)) throw error;
    await addIndexes(app, collection, attempts - 1);
  }
}

/**
 * Codes by which the database says that another change of the same indexes came between: what is stored has to be
 * looked at again.
 */
const RACED = new Set<unknown>([85, 86, 175, 276]);

/** The names of those that `collection` asks for and that are not there. */
export async function listMissingIndexes(app: Pick<App, 'db'>, collection: Collection): Promise<string[]> {
  const stored = await listStored(app, collection);
  return documentIndexes(collection)
    .filter((index) => !isAmong(stored, index))
    .map(({ name }) => name);
}

function isAmong(indexes: readonly Named[], index: Named): boolean {
  return indexes.some((other) => isSame(other, index));
}

const NAMESPACE_NOT_FOUND = 26;
const INDEX_NOT_FOUND = 27;

/** All but that of `_id`; none of a collection that is not there yet. */
async function listStored(app: Pick<App, 'db'>, collection: Collection): Promise<Named[]> {
  try {
    const stored = (await app.db.collection(documentsName(collection)).indexes()) as Named[];
    return stored.filter(({ name }) => name !== '_id_');
  } catch (error) {
    if ((error as { code?: unknown }).code === NAMESPACE_NOT_FOUND) return [];
    throw error;
  }
}

async function dropIndexes(app: Pick<App, 'db'>, collection: Collection, indexes: readonly Named[]): Promise<void> {
  for (const { name } of indexes) {
    try {
      await app.db.collection(documentsName(collection)).dropIndex(name);
    } catch (error) {
      // Another process was faster.
      if ((error as { code?: unknown }).code !== INDEX_NOT_FOUND) throw error;
    }
  }
}

/** The bytes that each index takes, by its name in the database; empty for a collection that holds nothing yet. */
export async function readIndexSizes(app: Pick<App, 'db'>, collection: Collection): Promise<Record<string, number>> {
  const stages = [{ $collStats: { storageStats: {} } }];
  try {
    const [stats] = await app.db.collection(documentsName(collection)).aggregate(stages).toArray();
    return (stats?.['storageStats'] as { indexSizes?: Record<string, number> } | undefined)?.indexSizes ?? {};
  } catch (error) {
    if ((error as { code?: unknown }).code === NAMESPACE_NOT_FOUND) return {};
    throw error;
  }
}
