import { type Doc, isDocument } from '../../codec/document.js';
import { refusal } from '../../errors.js';
import type { ExpressionContext } from '../../query/expression.js';
import { compileSort, type KeyTuple, type Sort } from '../../query/sort.js';
import { compareStrings, compareValues } from '../../query/values/compare.js';
import type { Budget } from '../budget.js';
import { MemoryCharge, inBatches, type Run, type Source, type Stage, type StageCompiler } from '../stage.js';

/** Something with its key, computed once. */
export interface Keyed {
  readonly keys: KeyTuple;
}

export interface KeyedDocument extends Keyed {
  readonly doc: Doc;
}

/** How many documents are sorted without a pause. */
const CHUNK = 512;

type Order = (a: Keyed, b: Keyed) => number;

/** Characters for which the order of UTF-16 units is not that of code points. */
const BEYOND_PLAIN = /[\ud800-\uffff]/;

type Compare = (a: unknown, b: unknown) => number;

function compareNumbers(a: number, b: number): number {
  return a - b || (a < b ? -1 : 0);
}

function comparePlain(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}

/**
 * The order of given items: where every key of a part is a number, or every one a string, without looking at types
 * again for each comparison.
 */
export function orderOf(items: readonly Keyed[], sort: Pick<Sort, 'parts' | 'compareKeys'>): Order {
  const { parts } = sort;
  const compares = parts.map((_part, i): Compare => {
    const isAll = (type: string) => items.every(({ keys }) => typeof keys[i] === type && keys[i] === keys[i]);
    if (isAll('number')) return compareNumbers as Compare;
    if (!isAll('string')) return compareValues;
    return (items.some(({ keys }) => BEYOND_PLAIN.test(keys[i] as string)) ? compareStrings : comparePlain) as Compare;
  });
  const [only] = compares;
  const [part] = parts;
  if (parts.length === 1 && part!.dir === 1) return (a, b) => only!(a.keys[0], b.keys[0]);
  return (a, b) => {
    for (let i = 0; i < compares.length; i++) {
      const order = compares[i]!(a.keys[i], b.keys[i]);
      if (order !== 0) return order * parts[i]!.dir;
    }
    return 0;
  };
}

/** Sorts stably, in slices: short runs first, then merges that let others run in between. */
export async function sortKeyed<T extends Keyed>(items: T[], order: Order, budget: Budget): Promise<T[]> {
  if (items.length <= CHUNK) return items.sort(order);
  let runs: T[][] = [];
  for (let i = 0; i < items.length; i += CHUNK) {
    runs.push(items.slice(i, i + CHUNK).sort(order));
    if (budget.tick(CHUNK)) await budget.pause();
  }
  while (runs.length > 1) {
    const merged: T[][] = [];
    for (let i = 0; i < runs.length; i += 2) {
      const [left, right] = [runs[i]!, runs[i + 1]];
      merged.push(right === undefined ? left : await merge(left, right, order, budget));
    }
    runs = merged;
  }
  return runs[0]!;
}

async function merge<T extends Keyed>(
  left: readonly T[],
  right: readonly T[],
  order: Order,
  budget: Budget,
): Promise<T[]> {
  const result: T[] = new Array<T>(left.length + right.length);
  let l = 0;
  let r = 0;
  for (let i = 0; i < result.length; i++) {
    if ((i & 255) === 255 && budget.tick(64)) await budget.pause();
    const takeLeft = r >= right.length || (l < left.length && order(left[l]!, right[r]!) <= 0);
    result[i] = takeLeft ? left[l++]! : right[r++]!;
  }
  return result;
}

/** Sorts a whole source in memory; with `most` only that many of the first are kept. */
export async function sortSource(
  source: Source,
  sort: Pick<Sort, 'keysOf' | 'compareKeys' | 'parts'>,
  run: Run,
  gauge: MemoryCharge,
  most = Infinity,
): Promise<Doc[]> {
  const { budget } = run;
  const room = Math.max(most * 2, CHUNK);
  let items: (KeyedDocument & { readonly bytes: number })[] = [];
  let bar: KeyTuple | null = null;
  for await (const batch of source) {
    for (const doc of batch) {
      if (budget.tick(1)) await budget.pause();
      const keys = sort.keysOf(doc);
      if (bar !== null && sort.compareKeys(keys, bar) >= 0) continue;
      items.push({ doc, keys, bytes: gauge.add(doc) });
      if (items.length >= room && most !== Infinity) {
        const sorted = await sortKeyed(items, orderOf(items, sort), budget);
        for (let i = most; i < sorted.length; i++) gauge.bytes(-sorted[i]!.bytes);
        items = sorted.slice(0, most);
        bar = items[items.length - 1]!.keys;
      }
    }
  }
  const sorted = await sortKeyed(items, orderOf(items, sort), budget);
  return (sorted.length > most ? sorted.slice(0, most) : sorted).map((item) => item.doc);
}

/** A sort that keeps only the first `most` documents when a limit follows. */
export function sortStage(sort: Sort, most = Infinity): Stage {
  return {
    async *run(source, run) {
      const gauge = new MemoryCharge(run.budget);
      try {
        yield* inBatches(await sortSource(source, sort, run, gauge, most));
      } finally {
        gauge.close();
      }
    },
    reads: sort.fields,
    replaces: false,
  };
}

/** The compiled sort of a `$sort` stage; an empty one is refused. */
export function requireSort(spec: unknown, { collation }: Pick<ExpressionContext, 'collation'>): Sort {
  if (!isDocument(spec)) throw refusal(15973, 'the $sort key specification must be an object');
  if (Object.keys(spec).length === 0) throw refusal(15976, '$sort stage must have at least one sort key');
  return compileSort(spec, collation);
}

export const sort: StageCompiler = (spec, { environment }) => sortStage(requireSort(spec, environment));
