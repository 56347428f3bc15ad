import type { CellValue, Result } from './output.js';

/** `1 document`, `2 documents`. */
export function countOf(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? '' : 's'}`;
}

const UNITS = ['bytes', 'KB', 'MB', 'GB', 'TB'];

/** Bytes for a person: `512 bytes`, `1.5 MB`, in the units of the settings (1 KB = 1024 bytes). */
export function presentBytes(bytes: number): string {
  const power = bytes < 1024 ? 0 : Math.min(Math.floor(Math.log2(bytes) / 10), UNITS.length - 1);
  return `${Math.round((bytes / 1024 ** power) * 10) / 10} ${UNITS[power]}`;
}

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

/**
 * The text of a command about a thing that `--if-not-exists` found: it stays as it is, and these parts of it are not as
 * asked for. `change` is a sentence that says how to change them.
 */
export function presentFound(thing: string, unmet: readonly string[] = [], change = ''): string {
  const said = `${thing} already exists; nothing was changed.`;
  return unmet.length === 0 ? said : `${said}\nNot as asked for: ${unmet.join(', ')}. ${change}`;
}

/** A thing with its secret, at the only moment when that can be shown; without one where it was there already. */
export function presentWithSecret(
  thing: { id: string },
  secret: string | null,
  more: object,
  lines: readonly string[],
): Result {
  return {
    json: { ...thing, ...(secret && { secret }), ...more },
    quiet: secret ?? thing.id,
    text: () => (secret ? [...lines, '', `  ${secret}`, '', 'The secret is shown this once.'] : lines).join('\n'),
  };
}
