/** One document of a file with the length of its text, or why there is none; `line` is where it begins, from 1. */
export type Entry = { line: number; value: unknown; length: number } | { line: number; problem: string };

/** Longer ones are refused: no database takes a document of that size, and memory stays bounded. */
export const MAX_ENTRY_BYTES = 16 * 1024 * 1024;
