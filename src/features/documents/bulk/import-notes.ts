/** What was stored as something else than it was, or left out. */
export interface ImportNote {
  field: string;
  message: string;
  count: number;
  /** The first of the values, or its line in the file. */
  index: number;
}

/** Different notes that are kept: a file can cause any number of them. */
const MAX_NOTES = 100;

/** Counts notes by field and message. */
export class ImportNotes {
  readonly #notes = new Map<string, ImportNote>();

  add(field: string, message: string, index: number, count = 1): void {
    const key = `${field}\n${message}`;
    const there = this.#notes.get(key);
    if (there) there.count += count;
    else if (this.#notes.size < MAX_NOTES) this.#notes.set(key, { field, message, count, index });
  }

  /** Adds those of a batch; `indexOf` says where its values are in the whole. */
  merge(notes: readonly ImportNote[] | undefined, indexOf: (index: number) => number): void {
    for (const { field, message, count, index } of notes ?? []) this.add(field, message, indexOf(index), count);
  }

  get list(): ImportNote[] {
    return [...this.#notes.values()];
  }
}
