import type { Collection } from './collection.js';
import { accessWord } from './rules/collection-rules.js';

/** A collection as HTTP and command line show it. */
export function presentCollection(collection: Collection) {
  return {
    id: collection._id.toHexString(),
    name: collection.name,
    mode: collection.mode,
    fields: collection.fields,
    access: accessWord(collection),
    rls: collection.rls ? { enabled: true as const, ...collection.rls } : { enabled: false as const },
    ...(collection.rules && { rules: collection.rules }),
    indexes: collection.indexes,
    ...(collection.uniques?.length && { uniques: collection.uniques }),
    ...(collection.expire && { expire: collection.expire }),
    ...(collection.changes && { changes: collection.changes }),
    version: collection.version,
    createdAt: collection.createdAt.toISOString(),
    updatedAt: collection.updatedAt.toISOString(),
  };
}
