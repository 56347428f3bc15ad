import { createHash } from 'node:crypto';
import { isDeepStrictEqual } from 'node:util';
import type { Document } from 'bson';
import type { Store } from '../../platform/database/database.js';
import { presentId, readExactly, readIndexes, readRaw } from './copy-collection.js';

export interface Comparison {
  documents: number;
  indexes: number;
  /** SHA-256 over the compared documents in the order of their ids. */
  sha256: string;
  /** The first difference, in words; null when there is none. */
  difference: string | null;
}

/** Documents that run out within this time are not compared: a server may remove them at any moment. */
const EXPIRY_MARGIN_MS = 6 * 3_600_000;

/**
 * Reads two collections from end to end and compares count, content and indexes. `filter` leaves out what may differ.
 */
export async function compareCollections(
  from: Store<Document>,
  to: Store<Document>,
  { filter, nowMs, stop }: { filter: Document; nowMs: number; stop: AbortSignal },
): Promise<Comparison> {
  const [indexes, there] = await Promise.all([readIndexes(from), readIndexes(to)]);
  const lasting = { $and: [filter, ...indexes.flatMap((index) => outlivesCheck(index, nowMs))] };
  const hashes = [createHash('sha256'), createHash('sha256')] as const;
  const left = readRaw(from, lasting)[Symbol.asyncIterator]();
  const right = readRaw(to, lasting)[Symbol.asyncIterator]();
  let difference: string | null = null;
  let documents = 0;
  try {
    for (;;) {
      stop.throwIfAborted();
      const [here, copy] = await Promise.all([left.next(), right.next()]);
      if (here.done && copy.done) break;
      if (!here.done) hashes[0].update(here.value);
      if (!copy.done) hashes[1].update(copy.value);
      if (here.done || copy.done || Buffer.compare(here.value, copy.value) !== 0) {
        const raw = (here.done ? copy.value : here.value) as Buffer;
        difference = `the document ${presentId(readExactly(raw))}`;
        break;
      }
      documents++;
    }
  } finally {
    await Promise.all([left.return?.(), right.return?.()]);
  }
  const [sha256, copied] = hashes.map((hash) => hash.digest('hex'));
  if (!difference && sha256 !== copied) difference = 'its content';
  difference ??= findIndexDifference(indexes, there);
  return { documents, indexes: indexes.length, sha256: sha256!, difference };
}

function outlivesCheck(index: Document, nowMs: number): Document[] {
  const seconds: unknown = index.expireAfterSeconds;
  if (typeof seconds !== 'number') return [];
  const [field] = Object.keys(index.key as object);
  return [{ [field!]: { $not: { $lt: new Date(nowMs + EXPIRY_MARGIN_MS - seconds * 1000) } } }];
}

/** The options of an index that are copied; servers tell more of their own. */
const COPIED_OPTIONS = ['unique', 'sparse', 'partialFilterExpression', 'expireAfterSeconds', 'hidden', 'collation'];

function toldOf(index: Document, option: string): unknown {
  const value: unknown = index[option];
  // Each server writes the version of its own tables.
  return option === 'collation' && value !== undefined ? { ...(value as Document), version: undefined } : value;
}

function findIndexDifference(indexes: readonly Document[], there: readonly Document[]): string | null {
  const copies = new Map(there.map((index) => [index.name, index]));
  for (const index of indexes) {
    const copy = copies.get(index.name);
    copies.delete(index.name);
    if (copy === undefined) return `the index ${String(index.name)}, which is missing there,`;
    // The order of the fields has a meaning.
    const sameKey = isDeepStrictEqual(Object.entries(index.key as object), Object.entries(copy.key as object));
    const option = COPIED_OPTIONS.find((name) => !isDeepStrictEqual(toldOf(index, name), toldOf(copy, name)));
    if (!sameKey) return `the key of the index ${String(index.name)}`;
    if (option !== undefined) return `${option} of the index ${String(index.name)}`;
  }
  const [more] = copies.keys();
  return more === undefined ? null : `the index ${String(more)}, which is only there,`;
}
