import type { CellValue, Result } from './output.js';

interface ListForm<T> {
  /** The word that stands for an item alone: an id, a name. */
  name: (item: T) => string;
  /** Said instead of a table of no rows. */
  empty: string;
  head: readonly string[];
  row: (item: T) => readonly CellValue[];
}

/** A list in its three forms: the items, their names, a table with a row for each. */
export function presentList<T>(items: readonly T[], { name, empty, head, row }: ListForm<T>): Result {
  return {
    json: items,
    quiet: items.map(name),
    text: (view) => (items.length === 0 ? empty : view.table(head, items.map(row))),
  };
}
