import type { Entry } from './entry.js';

export const NOT_UTF8 = 'not UTF-8: name what it is with --encoding, or convert the file';

/** Takes a byte order mark away; throws for bytes that are no UTF-8, which would be stored as something else. */
const decoder = new TextDecoder('utf-8', { fatal: true });

/** One JSON text as an entry; what does not parse is the entry's problem, not the file's. */
export function parseEntry(line: number, bytes: Buffer): Entry {
  let json: string;
  try {
    json = decoder.decode(bytes);
  } catch {
    return { line, problem: NOT_UTF8 };
  }
  try {
    return { line, value: JSON.parse(json) as unknown, length: json.length };
  } catch (error) {
    return { line, problem: `not valid JSON: ${(error as Error).message.split('\n')[0]!.slice(0, 200)}` };
  }
}
