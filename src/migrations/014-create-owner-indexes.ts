import type { ObjectId } from 'bson';
import type { IndexDescription } from 'mongodb';
import type { Database } from '../platform/database/database.js';
import type { Migration } from './migration.js';

interface PrivateCollection {
  _id: ObjectId;
  projectId: ObjectId;
  /** Each is `field` or `field,-other`. */
  indexes: string[];
  rls: { ownerField: string };
}

/**
 * In a private collection every list of an end user asks for their own documents first: each requested index is there
 * once more, behind the owner field. Collections made before that was so get theirs.
 */
export const createOwnerIndexes: Migration = {
  id: '014-create-owner-indexes',
  async up(db) {
    const stored = new Set(await db.listNames());
    const collections = await db
      .collection<PrivateCollection>('collections')
      .find({ state: 'active', 'rls.mode': 'private', 'indexes.0': { $exists: true } })
      .project<PrivateCollection>({ projectId: 1, indexes: 1, rls: 1 })
      .toArray();
    for (const collection of collections) {
      const name = `documents_${collection.projectId.toHexString()}_${collection._id.toHexString()}`;
      if (stored.has(name)) await addOwnerIndexes(db, name, collection);
    }
  },
};

/** MongoDB's most, that of `_id` among them. */
const MAX_INDEXES = 64;

/**
 * One after the other, so that one that cannot be built takes none along. They only make lists faster: any may be left
 * out.
 */
async function addOwnerIndexes(db: Database, name: string, collection: PrivateCollection): Promise<void> {
  const present = (await db.collection(name).indexes()).map(({ key }) => JSON.stringify(key));
  const missing = ownerIndexes(collection).filter(({ key }) => !present.includes(JSON.stringify(key)));
  for (const index of missing.slice(0, MAX_INDEXES - present.length)) {
    try {
      await db.createIndexes(name, [index]);
    } catch (error) {
      if (!UNBUILDABLE.has((error as { code?: unknown }).code)) throw error;
    }
  }
}

const UNBUILDABLE = new Set<unknown>([
  67, // No room, since others have made some meanwhile
  85, // Another index has that key already
  171, // A document holds arrays in both fields
]);

function ownerIndexes({ indexes, rls: { ownerField } }: PrivateCollection): IndexDescription[] {
  return indexes
    .map((spec) => ({ spec, parts: spec.split(',').map(readPart) }))
    .filter(({ parts }) => parts.every(([path]) => path !== ownerField))
    .map(({ spec, parts }) => {
      const tail: [string, 1 | -1][] = parts.length === 1 ? [['createdAt', -1]] : [];
      const last = parts.length === 1 ? -1 : parts.at(-1)![1];
      return {
        name: `own_${ownerField}:${spec}`,
        key: Object.fromEntries([[ownerField, 1], ...parts, ...tail, ['_id', last]]),
        partialFilterExpression: { isDeleted: false },
      };
    });
}

function readPart(part: string): [string, 1 | -1] {
  return part.startsWith('-') ? [part.slice(1), -1] : [part, 1];
}
