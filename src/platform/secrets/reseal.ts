import type { Document } from 'bson';
import type { Database } from '../database/database.js';
import type { SecretBox } from './secret-box.js';

/** One sealed text inside a stored record: where it stands, what it is, and what it is bound to. */
export interface SealedField {
  /** Dotted path, list positions included: `tokenSecrets.0.sealed`. */
  path: string;
  sealed: string;
  context: string;
}

/** A place of a feature's sealed texts: a rotation of the master key visits them all. */
export interface SealedPlace {
  collection: string;
  fields: (record: Document) => SealedField[];
}

/**
 * Seals again, with the newest master key, the texts that older keys sealed; returns their number. Each is exchanged
 * by one write that compares the old text, so what changes meanwhile is not lost, and repeating it is harmless.
 */
export async function resealAll(
  { db, secrets }: { db: Database; secrets: SecretBox },
  places: readonly SealedPlace[],
): Promise<number> {
  let count = 0;
  for (const { collection, fields } of places) {
    const store = db.collection(collection);
    for await (const record of store.find({})) {
      for (const { path, sealed, context } of fields(record)) {
        if (!secrets.isOld(sealed)) continue;
        const renewed = secrets.seal(secrets.open(sealed, context), context);
        const { modifiedCount } = await store.updateOne(
          { _id: record._id, [path]: sealed },
          { $set: { [path]: renewed } },
        );
        count += modifiedCount;
      }
    }
  }
  return count;
}
