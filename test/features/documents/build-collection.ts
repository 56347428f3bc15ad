import { ObjectId } from 'bson';
import type { Collection } from '../../../src/features/collections/collection.js';

/** A collection's record with everything a test does not care about filled in. */
export function buildCollection(given: Partial<Collection> = {}): Collection {
  const now = new Date('2026-11-21T10:00:00Z');
  return {
    _id: new ObjectId(),
    projectId: new ObjectId(),
    name: 'posts',
    mode: 'enforced',
    fields: [{ name: 'title', type: 'String' }],
    rls: null,
    isPublic: true,
    indexes: [],
    version: 1,
    state: 'active',
    createdAt: now,
    updatedAt: now,
    ...given,
  };
}
