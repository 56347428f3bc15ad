import type { Document } from 'bson';
import type { Database, Store } from '../database/database.js';
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
  /** By name, or those in which they may stand. */
  collection: string | ((db: Database) => Promise<string[]>);
  /** The records that can hold one; all unless said. */
  filter?: Document;
  fields: (record: Document) => SealedField[];
}

/**
 * Seals again, with the newest master key, the texts that older keys sealed; returns their number. Each is exchanged
 * by one write that compares the old text, so what changes during it is not lost, and repeating it is harmless.
 */
export async function resealAll(
  { db, secrets }: { db: Database; secrets: SecretBox },
  places: readonly SealedPlace[],
): Promise<number> {
  let count = 0;
  for (const place of places) {
    for (const name of await placeCollections(db, place)) {
      count += await resealStore(db.collection(name), secrets, place);
    }
  }
  return count;
}

/** The collections in which a place's sealed texts may stand. */
export async function placeCollections(db: Database, { collection }: SealedPlace): Promise<string[]> {
  return typeof collection === 'string' ? [collection] : collection(db);
}

async function resealStore(store: Store<Document>, secrets: SecretBox, place: SealedPlace): Promise<number> {
  let count = 0;
  for await (const record of store.find(place.filter ?? {})) {
    for (const { path, sealed, context } of place.fields(record)) {
      if (!secrets.isOld(sealed)) continue;
      const renewed = secrets.seal(secrets.open(sealed, context), context);
      const { modifiedCount } = await store.updateOne(
        { _id: record._id, [path]: sealed },
        { $set: { [path]: renewed } },
      );
      count += modifiedCount;
    }
  }
  return count;
}
