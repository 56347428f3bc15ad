import { isDeepStrictEqual } from 'node:util';
import type { Document, ObjectId } from 'bson';
import type { App } from '../../../app.js';
import { isDuplicateKey } from '../../../platform/database/database.js';
import { takeTurns } from '../../../scheduler.js';
import { documentsName, type Collection } from '../collection.js';
import { collectionStore } from '../collection-store.js';
import { HIDDEN_FIELD } from '../fields/field.js';
import { FOLDED, foldedNames, foldedPath, foldValue, namedPath } from '../fields/nocase.js';

/** Batch size, in documents. */
const BATCH = 100;

/**
 * Gives the stored documents of a collection, those in the trash too, the folded values that its record asks for at
 * this moment, and takes all others away. Harmless to repeat. A document that would then share a unique value is left
 * as it is, and the log names it.
 */
export async function foldDocuments(app: App, { _id: id }: Pick<Collection, '_id'>): Promise<void> {
  const turn = takeTurns();
  let after: ObjectId | null = null;
  for (;;) {
    await turn();
    // Each time: another change of the collection may have come between.
    const collection = await collectionStore(app).findOne({ _id: id, state: 'active' }, app.db.confirmedReads);
    if (!collection) return;
    const names = foldedNames(collection);
    const stored = app.db.collection<Stored>(documentsName(collection));
    const wanted: Document = {
      ...(after === null ? {} : { _id: { $gt: after } }),
      ...(names.length === 0 && { [FOLDED]: { $exists: true } }),
    };
    const found = await stored
      .find(wanted)
      .project<Stored>(Object.fromEntries([...names, FOLDED].map((path) => [path, 1])))
      .sort({ _id: 1 })
      .limit(BATCH)
      .toArray();
    if (found.length === 0) return;
    after = found.at(-1)!._id;
    // Together: the database commits them at once.
    await Promise.all(found.map((document) => foldDocument(app, collection, names, document)));
  }
}

type Stored = Document & { _id: ObjectId };

/** Sets the folded values of one document, unless a concurrent write changes it and sets them itself. */
async function foldDocument(
  app: App,
  collection: Collection,
  names: readonly string[],
  document: Stored,
): Promise<void> {
  const write = readWrite(names, document);
  if (!write) return;
  try {
    await app.db.collection<Stored>(documentsName(collection)).updateOne(write.filter, write.update);
  } catch (error) {
    if (!isDuplicateKey(error)) throw error;
    app.log.warn(
      {
        project: collection.projectId.toHexString(),
        collection: collection.name,
        document: document._id.toHexString(),
        fields: Object.keys(error.keyPattern ?? {}).map(namedPath),
      },
      'a document that was stored while fields became @nocase shares their unique value with another one',
    );
  }
}

/** Makes the folded values of a document those of `names`, as long as it holds what was read; null if they are. */
function readWrite(names: readonly string[], document: Stored): { filter: Document; update: Document } | null {
  const held = ((document[HIDDEN_FIELD] as Document | undefined)?.nocase ?? {}) as Document;
  const set: Document = {};
  const unset: Document = names.length === 0 ? { [FOLDED]: '' } : {};
  const filter: Document = { _id: document._id };
  for (const name of names) {
    const value: unknown = document[name];
    filter[name] = value === undefined ? { $exists: false } : { $eq: value };
    if (value === undefined) {
      if (Object.hasOwn(held, name)) unset[foldedPath(name)] = '';
    } else if (!isDeepStrictEqual(held[name], foldValue(value))) {
      set[foldedPath(name)] = foldValue(value);
    }
  }
  if (names.length > 0) {
    for (const name of Object.keys(held)) if (!names.includes(name)) unset[foldedPath(name)] = '';
  }
  const update = {
    ...(Object.keys(set).length > 0 && { $set: set }),
    ...(Object.keys(unset).length > 0 && { $unset: unset }),
  };
  return Object.keys(update).length > 0 ? { filter, update } : null;
}
