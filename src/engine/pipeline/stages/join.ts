import type { Doc } from '../../codec/document.js';
import { readPath, splitPath, visitPath } from '../../query/values/path.js';
import { compareValues } from '../../query/values/compare.js';
import { typeOf } from '../../query/values/value.js';
import { weigh } from '../../query/values/weight.js';
import { keyOf } from '../../query/values/value-key.js';
import { STAGE_BATCH_BYTES, BATCH_SIZE, MemoryCharge, type Run } from '../stage.js';

/** The documents of another collection that share a value with given ones. */
export interface Join {
  /** For each document, the matching ones of the other collection; lists may be shared. */
  matches(docs: readonly Doc[]): Promise<(readonly Doc[])[]>;
  close(): void;
}

/** How many found documents and values without any are kept for later batches with the same values. */
const MAX_KEPT = 20_000;
/** How many values one query of the other collection asks for. */
export const MAX_ASKED = 10_000;

/** The values a document joins by: an array's elements, or the value itself, missing counting as null. */
function joinValues(value: unknown): readonly unknown[] {
  if (Array.isArray(value)) return value;
  return [value ?? null];
}

/**
 * A filter for documents that hold one of the values at the path; regular expressions are values here, not patterns.
 */
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
    kept += wanted.size;
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
      const { budget } = run;
      const keysByDoc: Set<unknown>[] = [];
      let wanted = new Map<unknown, unknown>();
      for (const doc of docs) {
        const keys = new Set<unknown>();
        for (const value of joinValues(readPath(doc, local))) {
          const key = keyOf(value);
          keys.add(key);
          if (found.has(key)) continue;
          wanted.set(key, value);
          if (wanted.size < MAX_ASKED) continue;
          await fetch(wanted);
          wanted = new Map();
        }
        keysByDoc.push(keys);
        if (budget.tick(1)) await budget.pause();
      }
      if (wanted.size > 0) await fetch(wanted);
      const lists: (readonly Doc[])[] = [];
      for (const keys of keysByDoc) {
        const list = combine([...keys].map((key) => found.get(key)!));
        lists.push(list);
        if (budget.tick(keys.size + (keys.size > 1 ? list.length : 0))) await budget.pause();
      }
      return lists;
    },
    close: forget,
  };
}

/** Several values may find the same document, and in an order that is not the collection's. */
function combine(lists: readonly (readonly Doc[])[]): readonly Doc[] {
  const full = lists.filter((list) => list.length > 0);
  if (full.length <= 1) return full[0] ?? [];
  const all = new Map<unknown, Doc>();
  for (const list of full) for (const doc of list) all.set(keyOf(doc['_id']), doc);
  return [...all.values()].sort((a, b) => compareValues(a['_id'], b['_id']));
}

/** Puts what was found into a document. */
export type Attach = (doc: Doc, found: readonly Doc[]) => Doc;

/** Hands on documents with their lists. */
export async function* attachLists(
  docs: readonly Doc[],
  lists: readonly (readonly Doc[])[],
  { budget }: Run,
  attach: Attach,
): AsyncGenerator<Doc[]> {
  let out: Doc[] = [];
  for (const [i, doc] of docs.entries()) {
    const joined = attach(doc, lists[i]!);
    weigh(joined);
    out.push(joined);
    if (budget.tick(1)) await budget.pause();
    if (out.length < BATCH_SIZE) continue;
    yield out;
    out = [];
  }
  if (out.length > 0) yield out;
}

/** Hands on documents with what each finds by itself, as many at once as are not too heavy. */
export async function* joinEach(
  docs: readonly Doc[],
  { budget }: Run,
  find: (doc: Doc, index: number, gauge: MemoryCharge) => Promise<readonly Doc[]>,
  attach: Attach,
): AsyncGenerator<Doc[]> {
  const gauge = new MemoryCharge(budget);
  let out: Doc[] = [];
  let bytes = 0;
  try {
    for (const [i, doc] of docs.entries()) {
      const joined = attach(doc, await find(doc, i, gauge));
      out.push(joined);
      bytes += weigh(joined);
      if (budget.tick(1)) await budget.pause();
      if (bytes < STAGE_BATCH_BYTES) continue;
      yield out;
      gauge.close();
      out = [];
      bytes = 0;
    }
    if (out.length > 0) yield out;
  } finally {
    gauge.close();
  }
}
