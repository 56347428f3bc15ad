import type { Doc } from '../../codec/document.js';
import type { Storage } from '../../storage/storage.js';
import { modifyMany } from './modify.js';
import { Pace } from '../pace.js';
import { compileQuery } from '../read/query.js';

/**
 * Deletes the documents whose TTL indexes say that their time is over: the indexed date (any of them, in an array) plus
 * `expireAfterSeconds` lies before `now`. Returns how many. Several processes may do it at once.
 */
export async function expireDocuments(storage: Storage, now = new Date()): Promise<number> {
  storage.refresh();
  let deleted = 0;
  for (const collection of storage.catalog.list('')) {
    for (const { definition } of collection.indexes) {
      const { expireAfterSeconds, state, key, name, partialFilterExpression } = definition;
      if (expireAfterSeconds === undefined || state !== 'ready') continue;
      const [path] = Object.keys(key);
      const expired: Doc = { [path!]: { $lt: new Date(now.getTime() - expireAfterSeconds * 1000) } };
      const filter = partialFilterExpression === undefined ? expired : { $and: [expired, partialFilterExpression] };
      const query = compileQuery(filter, {}, name);
      const modification = { filter, query, update: null, upsert: false };
      deleted += (await modifyMany(storage, collection.ns, modification, new Pace(undefined, undefined))).matched;
    }
  }
  return deleted;
}
