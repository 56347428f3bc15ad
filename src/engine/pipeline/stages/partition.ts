import { typeMismatch } from '../../errors.js';
import type { Expression } from '../../query/expression.js';
import type { Sort } from '../../query/sort.js';
import { compareValues } from '../../query/values/compare.js';
import { keyOf } from '../../query/values/value-key.js';
import type { MemoryCharge, Run, Source } from '../stage.js';
import { type Keyed, type KeyedDocument, orderOf, sortKeyed } from './sort.js';

/** The documents of one partition in order, with what they are ordered by. */
export type Partition = readonly KeyedDocument[];

interface OpenPartition extends Keyed {
  /** Its first key is what the documents have in common. */
  readonly items: KeyedDocument[];
}

/** Splits a whole source by an expression and sorts each part; the parts come in the order of their keys. */
export async function partitionSource(
  source: Source,
  run: Run,
  gauge: MemoryCharge,
  by: Expression | null,
  sort: Sort | null,
): Promise<Partition[]> {
  const { budget, scope } = run;
  const parts = new Map<unknown, OpenPartition>();
  for await (const batch of source) {
    for (const doc of batch) {
      scope.root = doc;
      const id = by === null ? null : by.evaluate(doc, scope);
      if (Array.isArray(id)) {
        throw typeMismatch('An expression used to partition cannot evaluate to value of type array');
      }
      const key = keyOf(id ?? null);
      let part = parts.get(key);
      if (part === undefined) {
        part = { keys: [id ?? null], items: [] };
        parts.set(key, part);
      }
      gauge.add(doc);
      part.items.push({ doc, keys: sort === null ? [] : sort.keysOf(doc) });
      if (budget.tick(1)) await budget.pause();
    }
  }
  const ordered = await sortKeyed([...parts.values()], (a, b) => compareValues(a.keys[0], b.keys[0]), budget);
  const result: Partition[] = [];
  for (const part of ordered) {
    result.push(sort === null ? part.items : await sortKeyed(part.items, orderOf(part.items, sort), budget));
    if (budget.tick(1)) await budget.pause();
  }
  return result;
}
