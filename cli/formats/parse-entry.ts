import type { Entry } from './entry.js';

/** One JSON text as an entry; what does not parse is the entry's problem, not the file's. */
export function parseEntry(line: number, json: string): Entry {
  try {
    return { line, value: JSON.parse(json) as unknown, length: json.length };
  } catch (error) {
    return { line, problem: `not valid JSON: ${(error as Error).message.split('\n')[0]!.slice(0, 200)}` };
  }
}
