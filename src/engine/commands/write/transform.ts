import { EntryBudget } from '../../storage/keys/entry-budget.js';
import type { Storage } from '../../storage/storage.js';
import type { Query } from '../read/query.js';
import { openCollection } from './insert.js';
import { findInside, LATER } from './modify.js';

/** What becomes of a document: bytes in which only the `touched` top-level fields may differ; null removes it. */
export interface Outcome {
  after: Buffer | null;
  touched: ReadonlySet<string> | null;
}

/** One document of a transaction, and what decides about its BSON (null: there is none). Null leaves it as it is. */
export interface Turn {
  ns: string;
  id: unknown;
  decide: (stored: Buffer | null) => Outcome | null;
}

/**
 * Reads, decides and writes the documents in their order in one transaction, each seeing those before it: all or none.
 * A throw of `decide` refuses all of them; what others write in the same transaction stays. `decide` may run again.
 */
export function transform(storage: Storage, turns: readonly Turn[]): Promise<void> {
  return storage.queue.write(() => {
    const budget = new EntryBudget();
    for (const turn of turns) carryOutTurn(storage, turn, budget);
  });
}

/** `transform` of one document inside a transaction that is under way. `budget`: of the index entries of new ones. */
export function carryOutTurn(storage: Storage, { ns, id, decide }: Turn, budget = new EntryBudget()): void {
  const { documents } = storage;
  const collection = storage.catalog.find(ns);
  const idBytes = Buffer.from(documents.encodeId(id));
  const before = (collection && documents.read(collection, idBytes)) ?? null;
  const outcome = decide(before);
  if (outcome === null) return;
  const { after, touched } = outcome;
  if (before === null) {
    if (after !== null) documents.insert(collection ?? openCollection(storage, ns), after, budget);
  } else if (after === null) {
    documents.delete(collection!, idBytes, before);
  } else if (!after.equals(before)) {
    documents.replace(collection!, idBytes, before, after, touched);
  }
}

/** Whether a document matches inside the transaction that is under way; undefined where that takes too long to find. */
export function existsInside(storage: Storage, ns: string, query: Query): boolean | undefined {
  const collection = storage.catalog.find(ns);
  const found = collection && findInside(storage, collection, query);
  return found === LATER ? undefined : found !== null;
}

/** The document of an id inside the transaction that is under way; null where there is none. */
export function readInside(storage: Storage, ns: string, id: unknown): Buffer | null {
  const collection = storage.catalog.find(ns);
  return (collection && storage.documents.read(collection, Buffer.from(storage.documents.encodeId(id)))) ?? null;
}
