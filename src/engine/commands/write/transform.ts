import type { EntryBudget } from '../../storage/keys/entry-budget.js';
import type { CollectionEntry } from '../../storage/keys/index-definition.js';
import type { Storage } from '../../storage/storage.js';
import type { Query } from '../read/query.js';
import { openCollection } from './insert.js';
import { findInside, LATER } from './modify.js';

/** The place of a document inside the transaction that is under way, and what is there. */
export interface DocumentPlace {
  ns: string;
  collection: CollectionEntry | null;
  idBytes: Buffer;
  stored: Buffer | null;
}

/** The place of a document by its id, with a copy of what is there. */
export function readPlace(storage: Storage, ns: string, id: unknown): DocumentPlace {
  const collection = storage.catalog.find(ns);
  const idBytes = Buffer.from(storage.documents.encodeId(id));
  return { ns, collection, idBytes, stored: (collection && storage.documents.read(collection, idBytes)) ?? null };
}

/**
 * Puts a document into a place, or removes the one that is there. Only the `touched` top-level fields may differ, null:
 * any. `budget`: of the index entries of new ones.
 */
export function writePlace(
  storage: Storage,
  { ns, collection, idBytes, stored }: DocumentPlace,
  after: Buffer | null,
  touched: ReadonlySet<string> | null,
  budget: EntryBudget,
): void {
  const { documents } = storage;
  if (stored === null) {
    if (after !== null) documents.insert(collection ?? openCollection(storage, ns), after, budget);
  } else if (after === null) {
    documents.delete(collection!, idBytes, stored);
  } else if (!after.equals(stored)) {
    documents.replace(collection!, idBytes, stored, after, touched);
  }
}

/** Whether a document matches inside the transaction that is under way; undefined where that takes too long to find. */
export function existsInside(storage: Storage, ns: string, query: Query): boolean | undefined {
  const collection = storage.catalog.find(ns);
  const found = collection && findInside(storage, collection, query);
  return found === LATER ? undefined : found !== null;
}
