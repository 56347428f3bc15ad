import type { Document } from 'bson';
import type { Database, Store } from './database.js';

/** The way to the stored records of one kind: `sessionStore(app).findOne(…)`. */
export function storeOf<T extends Document>(name: string): (deps: { readonly db: Database }) => Store<T> {
  return ({ db }) => db.collection<T>(name);
}
