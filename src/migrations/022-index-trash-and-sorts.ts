import type { ObjectId } from 'bson';
import type { IndexDescription } from 'mongodb';
import type { Database } from '../platform/database/database.js';
import type { Migration } from './migration.js';

interface StoredCollection {
  _id: ObjectId;
  projectId: ObjectId;
  fields?: { name: string; type: string }[];
  /** Each is `field`, `field,-other` or `field:2dsphere`. */
  indexes: string[];
  rls: { mode: string; ownerField: string } | null;
}

const ACTIVE = { isDeleted: false };
const TRASHED = { isDeleted: true };

/**
 * Lists with trashed documents find these by an index, those of one owner too, and in a private collection a list that
 * is sorted by an indexed field has an index behind the owner. Indexes that were to sort by an array, which none can,
 * go.
 */
export const indexTrashAndSorts: Migration = {
  id: '022-index-trash-and-sorts',
  async up(db) {
    const stored = await db.listNames();
    const collections = await db
      .collection<StoredCollection>('collections')
      .find({ state: 'active' })
      .project<StoredCollection>({ projectId: 1, fields: 1, indexes: 1, rls: 1 })
      .toArray();
    const known = new Map(collections.map((each) => [nameOf(each), each]));
    for (const name of stored.filter((each) => each.startsWith('documents_'))) {
      await addIndexes(db, name, known.get(name) ?? null);
    }
  },
};

function nameOf({ projectId, _id }: StoredCollection): string {
  return `documents_${projectId.toHexString()}_${_id.toHexString()}`;
}

/** MongoDB's most, that of `_id` among them. */
const MAX_INDEXES = 64;

/**
 * One after the other, so that one that cannot be built takes none along. They only make lists faster: any may be left
 * out.
 */
async function addIndexes(db: Database, name: string, collection: StoredCollection | null): Promise<void> {
  const present = await db.collection(name).indexes();
  const keys = present.map(({ key }) => JSON.stringify(key));
  const useless = new Set(collection === null ? [] : arraySorts(collection));
  for (const { name: index } of present) {
    if (index === undefined || !useless.has(index)) continue;
    await db
      .collection(name)
      .dropIndex(index)
      .catch((error: unknown) => {
        // Somebody else was faster.
        if ((error as { code?: unknown }).code !== INDEX_NOT_FOUND) throw error;
      });
  }
  const missing = wantedIndexes(collection).filter(({ key }) => !keys.includes(JSON.stringify(key)));
  for (const index of missing.slice(0, Math.max(0, MAX_INDEXES - present.length))) {
    try {
      await db.createIndexes(name, [index]);
    } catch (error) {
      if (!UNBUILDABLE.has((error as { code?: unknown }).code)) throw error;
    }
  }
}

const INDEX_NOT_FOUND = 27;
const UNBUILDABLE = new Set<unknown>([
  67, // No room, since others have made some meanwhile
  85, // Another index has that key already
  171, // A document holds arrays in both fields
]);

function arraySorts({ fields = [], indexes }: StoredCollection): string[] {
  const arrays = new Set(fields.filter(({ type }) => type === 'Array').map((field) => field.name));
  return indexes.filter((spec) => arrays.has(readPart(spec)[0])).map((spec) => `sort_${spec}`);
}

function wantedIndexes(collection: StoredCollection | null): IndexDescription[] {
  const trash = { name: 'trash_createdAt', key: { createdAt: 1, _id: 1 }, partialFilterExpression: TRASHED } as const;
  if (!collection?.rls) return [trash];
  const { fields = [], indexes, rls } = collection;
  const { mode, ownerField } = rls;
  const arrays = new Set(fields.filter(({ type }) => type === 'Array').map((field) => field.name));
  const sorts = indexes
    .filter((spec) => mode === 'private' && !spec.includes(',') && !spec.endsWith(':2dsphere'))
    .map((spec) => ({ spec, part: readPart(spec) }))
    .filter(({ part: [path] }) => path !== ownerField && path !== '_id' && !arrays.has(path))
    .map(({ spec, part: [path, direction] }) => ({
      name: `own_sort_${ownerField}:${spec}`,
      key: { [ownerField]: 1, [path]: direction, _id: direction },
      partialFilterExpression: ACTIVE,
    }));
  return [
    trash,
    {
      name: `trash_${ownerField}`,
      key: { [ownerField]: 1, createdAt: 1, _id: 1 },
      partialFilterExpression: TRASHED,
    },
    ...sorts,
  ];
}

function readPart(part: string): [string, 1 | -1] {
  return part.startsWith('-') ? [part.slice(1), -1] : [part, 1];
}
