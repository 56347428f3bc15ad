import { readPath, splitPath, visitPath } from '../../query/path.js';
import { compareValues } from '../../query/compare.js';
import { type Doc, isNullish, typeOf } from '../../query/value.js';
import { weigh } from '../../query/weight.js';
import { keyOf } from '../../query/value-key.js';
import type { Run } from '../stage.js';

/** The documents of another collection that share a value with given ones. */
export interface Join {
  /** For each document, the matching ones of the other collection. */
  matches(docs: readonly Doc[]): Promise<Doc[][]>;
  close(): void;
}

/** How many found documents are kept for later batches with the same values. */
const MAX_KEPT = 20_000;

/** The values a document joins by: an array's elements, or the value itself, missing counting as null. */
function joinValues(value: unknown): readonly unknown[] {
  if (Array.isArray(value)) return value;
  return [value ?? null];
}

/** A filter for documents that hold one of the values at the path; regular expressions are values here, not patterns. */
export function equalityFilter(path: string, values: readonly unknown[]): Doc {
  const plain = values.filter((value) => typeOf(value) !== 'regex');
  if (plain.length === values.length) return { [path]: { $in: plain } };
  const patterns = values.filter((value) => typeOf(value) === 'regex').map((value) => ({ [path]: { $eq: value } }));
  return { $or: [{ [path]: { $in: plain } }, ...patterns] };
}

/**
 * Opens a join by equality. Values are looked up once, in batches, through the filter of `open`, so that an index on
 * the other collection's field is used; what was found is kept for further batches.
 */
export function openJoin(from: string, localField: string, foreignField: string, run: Run): Join {
  const local = splitPath(localField);
  const foreign = splitPath(foreignField);
  const found = new Map<unknown, Doc[]>();
  let kept = 0;
  let charged = 0;

  function forget(): void {
    found.clear();
    run.budget.release(charged);
    kept = 0;
    charged = 0;
  }

  async function fetch(wanted: ReadonlyMap<unknown, unknown>): Promise<void> {
    for (const key of wanted.keys()) found.set(key, []);
    const filter = equalityFilter(foreignField, [...wanted.values()]);
    for await (const batch of run.open(from, { filter })) {
      for (const doc of batch) {
        const size = weigh(doc);
        charged += size;
        run.budget.charge(size);
        kept++;
        addUnderKeys(doc, wanted);
        if (run.budget.tick(1)) await run.budget.pause();
      }
    }
  }

  function addUnderKeys(doc: Doc, wanted: ReadonlyMap<unknown, unknown>): void {
    const seen = new Set<unknown>();
    visitPath(doc, foreign, true, (value) => {
      const key = keyOf(value ?? null);
      if (wanted.has(key) && !seen.has(key)) {
        seen.add(key);
        found.get(key)!.push(doc);
      }
      return false;
    });
  }

  return {
    async matches(docs) {
      if (kept > MAX_KEPT) forget();
      const keysByDoc: unknown[][] = [];
      const wanted = new Map<unknown, unknown>();
      for (const doc of docs) {
        const keys = new Set<unknown>();
        for (const value of joinValues(readPath(doc, local))) {
          const key = keyOf(value);
          keys.add(key);
          if (!found.has(key)) wanted.set(key, value);
        }
        keysByDoc.push([...keys]);
      }
      if (wanted.size > 0) await fetch(wanted);
      return keysByDoc.map((keys) => combine(keys.map((key) => found.get(key)!)));
    },
    close: forget,
  };
}

/** Several values may find the same document, and in an order that is not the collection's. */
function combine(lists: readonly Doc[][]): Doc[] {
  const full = lists.filter((list) => list.length > 0);
  if (full.length <= 1) return full.length === 0 ? [] : [...full[0]!];
  const all = new Set<Doc>();
  const ids = new Set<unknown>();
  for (const doc of full.flat()) {
    const id = keyOf(doc['_id']);
    if (isNullish(id) || !ids.has(id)) all.add(doc);
    ids.add(id);
  }
  return [...all].sort((a, b) => compareValues(a['_id'], b['_id']));
}
