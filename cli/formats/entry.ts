import { TextDecoder } from 'node:util';
import { losesDigits } from '../../src/exchange/csv-row.js';

/**
 * One document of a file with the length of its text, why there is none, or what else the file holds. `line` is where
 * it begins, from 1.
 */
export type Entry =
  { line: number; value: unknown; length: number } | { line: number; problem: string } | { line: number; note: string };

/** Longer ones are refused: no database takes a document of that size, and memory stays bounded. */
export const MAX_ENTRY_BYTES = 16 * 1024 * 1024;

export const TOO_LONG = `longer than ${MAX_ENTRY_BYTES / 1024 / 1024} MB`;

export const NOT_UTF8 = 'not UTF-8: name what it is with --encoding, or convert the file';

/** Takes a byte order mark away; throws for bytes that are no UTF-8, which would be stored as something else. */
const decoder = new TextDecoder('utf-8', { fatal: true });

/** One JSON text as an entry; what does not parse is the entry's problem, not the file's. */
export function parseEntry(line: number, bytes: Buffer): Exclude<Entry, { note: string }> {
  let json: string;
  try {
    json = decoder.decode(bytes);
  } catch {
    return { line, problem: NOT_UTF8 };
  }
  try {
    return { line, value: JSON.parse(LONG_NUMBER.test(json) ? withWholeNumbers(json) : json), length: json.length };
  } catch (error) {
    return { line, problem: `not valid JSON: ${(error as Error).message.split('\n')[0]!.slice(0, 200)}` };
  }
}

/** Fewer digits than these fit every number. */
const LONG_NUMBER = /\d[\d.]{15}/;
const NUMBER = /-?\d[\d.eE+-]*/g;

/**
 * The text with numbers that would lose digits as `$numberDecimal` of Extended JSON, so that the reader of the value
 * gets all digits.
 */
function withWholeNumbers(json: string): string {
  const parts: string[] = [];
  for (let at = 0; at < json.length;) {
    const quote = json.indexOf('"', at);
    const bare = json.slice(at, quote < 0 ? undefined : quote);
    parts.push(bare.replace(NUMBER, (text) => (losesDigits(text) ? `{"$numberDecimal":"${text}"}` : text)));
    if (quote < 0) break;
    at = endOfText(json, quote + 1);
    parts.push(json.slice(quote, at));
  }
  return parts.join('');
}

/** The position behind the quotation mark that ends a text. */
function endOfText(json: string, from: number): number {
  for (let at = json.indexOf('"', from); at >= 0; at = json.indexOf('"', at + 1)) {
    let backslashes = 0;
    while (json[at - 1 - backslashes] === '\\') backslashes += 1;
    if (backslashes % 2 === 0) return at + 1;
  }
  return json.length;
}
