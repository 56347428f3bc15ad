/**
 * One document of a file with the length of its text, why there is none, or what else the file holds. `line` is where
 * it begins, from 1.
 */
export type Entry =
  { line: number; value: unknown; length: number } | { line: number; problem: string } | { line: number; note: string };

/** Longer ones are refused: no database takes a document of that size, and memory stays bounded. */
export const MAX_ENTRY_BYTES = 16 * 1024 * 1024;

export const TOO_LONG = `longer than ${MAX_ENTRY_BYTES / 1024 / 1024} MB`;
