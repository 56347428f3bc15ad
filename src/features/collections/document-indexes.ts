import type { IndexDescription } from 'mongodb';
import type { App } from '../../app.js';
import { documentsName, type Collection } from './collection.js';
import { HIDDEN_FIELD } from './field.js';

/** Lists look at active documents only, so their indexes hold nothing else: smaller, and a count needs no document. */
const ACTIVE = { isDeleted: false };

/** `isDeleted` of a document that a bulk insert has written but not published: no list shows it, unique indexes count it. */
export const PENDING = 'pending';

/** `isDeleted` of a document that is gone for everybody and kept only until its last event has been relayed: nothing shows or counts it. */
export const REMOVED = 'removed';

type Named = IndexDescription & { name: string; key: Record<string, 1 | -1> };

/** The indexes that a collection's schema, RLS and requests ask for. Names tell the purpose and never change for the same index. */
export function documentIndexes(collection: Pick<Collection, 'mode' | 'fields' | 'rls' | 'indexes'>): Named[] {
  const indexes: Named[] = [
    { name: 'active_createdAt', key: { createdAt: -1, _id: -1 }, partialFilterExpression: ACTIVE },
    { name: 'trash_deletedAt', key: { deletedAt: 1 }, partialFilterExpression: { isDeleted: true } },
    { name: 'waiting_events', key: { [`${HIDDEN_FIELD}.at`]: 1 }, sparse: true },
  ];
  if (collection.rls) {
    const { ownerField } = collection.rls;
    indexes.push({
      name: `owner_${ownerField}`,
      key: { [ownerField]: 1, createdAt: -1, _id: -1 },
      partialFilterExpression: ACTIVE,
    });
  }
  for (const field of collection.fields) {
    if (field.unique && collection.mode === 'enforced') indexes.push(uniqueIndex(field.name));
  }
  for (const spec of collection.indexes) {
    indexes.push({ name: `list_${spec}`, key: requestedKey(spec), partialFilterExpression: ACTIVE });
    if (!spec.includes(','))
      indexes.push({ name: `sort_${spec}`, key: sortKey(spec), partialFilterExpression: ACTIVE });
  }
  return [...indexes, ...ownerIndexes(collection).slice(0, Math.max(0, MOST_INDEXES - indexes.length))];
}

/** MongoDB holds 64 indexes of a collection, that of `_id` among them. */
const MOST_INDEXES = 63;

/** In a private collection every list of an end user asks for their own documents first, whatever else it asks for. */
function ownerIndexes({ rls, indexes }: Pick<Collection, 'rls' | 'indexes'>): Named[] {
  if (rls?.mode !== 'private') return [];
  return indexes
    .filter((spec) => !readParts(spec).some(([path]) => path === rls.ownerField))
    .map((spec) => ({
      name: `own_${spec}`,
      key: { [rls.ownerField]: 1, ...requestedKey(spec) },
      partialFilterExpression: ACTIVE,
    }));
}

/** Unique among active documents that have the field (decisions.md 3). */
export function uniqueIndex(field: string): Named {
  return {
    name: `unique_${field}`,
    key: { [field]: 1 },
    unique: true,
    partialFilterExpression: { isDeleted: { $in: [false, PENDING] }, [field]: { $exists: true } },
  };
}

/** `country` serves filters on it in the default order; `country,-population` is taken as written. Ties are broken by `_id` like every list. */
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

/** Makes the stored indexes those that `collection` asks for: creates what is missing, then drops what is no longer wanted. Throws the duplicate key error of a unique index that cannot be built. */
export async function applyIndexes(app: Pick<App, 'db'>, collection: Collection): Promise<void> {
  const store = app.db.collection(documentsName(collection));
  const wanted = documentIndexes(collection);
  await app.db.createIndexes(documentsName(collection), wanted);
  const names = new Set(['_id_', ...wanted.map((index) => index.name)]);
  for (const { name } of await store.indexes()) {
    if (name && !names.has(name)) await store.dropIndex(name);
  }
}
