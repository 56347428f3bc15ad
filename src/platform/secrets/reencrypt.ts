import type { Document } from 'bson';
import type { Database, Store } from '../database/database.js';
import type { SecretBox } from './secret-box.js';

/** One encrypted text inside a stored record: where it stands, what it is, and what it is bound to. */
export interface EncryptedField {
  /** Dotted path, list positions included: `tokenSecrets.0.encrypted`. */
  path: string;
  encrypted: string;
  context: string;
}

/** A place of a feature's encrypted texts: a rotation of the master key visits them all. */
export interface EncryptedPlace {
  /** By name, or those in which they may stand. */
  collection: string | ((db: Database) => Promise<string[]>);
  /** The records that can hold one; all unless said. */
  filter?: Document;
  fields: (record: Document) => EncryptedField[];
}

/**
 * Encrypts again, with the newest master key, the texts that older keys encrypted; returns their number. Each is
 * exchanged by one write that compares the old text, so what changes during it is not lost, and repeating it is
 * harmless.
 */
export async function reencryptAll(
  { db, secrets }: { db: Database; secrets: SecretBox },
  places: readonly EncryptedPlace[],
): Promise<number> {
  let count = 0;
  for (const place of places) {
    for (const name of await placeCollections(db, place)) {
      count += await reencryptStore(db.collection(name), secrets, place);
    }
  }
  return count;
}

/** The collections in which a place's encrypted texts may stand. */
export async function placeCollections(db: Database, { collection }: EncryptedPlace): Promise<string[]> {
  return typeof collection === 'string' ? [collection] : collection(db);
}

async function reencryptStore(store: Store<Document>, secrets: SecretBox, place: EncryptedPlace): Promise<number> {
  let count = 0;
  for await (const record of store.find(place.filter ?? {})) {
    for (const { path, encrypted, context } of place.fields(record)) {
      if (!secrets.isOld(encrypted)) continue;
      const renewed = secrets.encrypt(secrets.decrypt(encrypted, context), context);
      const { modifiedCount } = await store.updateOne(
        { _id: record._id, [path]: encrypted },
        { $set: { [path]: renewed } },
      );
      count += modifiedCount;
    }
  }
  return count;
}
