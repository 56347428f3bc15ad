import { setImmediate as nextTurn } from 'node:timers/promises';
import { JsonWriter } from '../../platform/bson-json.js';
import { abandoned } from '../../errors.js';
import { decodeDocument } from './encode-document.js';

const EXACT_NUMBERS: ReadonlySet<unknown> = new Set(['Decimal128', 'Long']);
/** So much of BSON is encoded before others get a turn: a millisecond or two. */
const TURN_BYTES = 256 * 1024;
const COMMA = 0x2c;

const writer = new JsonWriter();

/** The JSON array of what a pipeline yielded, as `latin1` text; ends early by an AppError when `signal` aborts. */
export async function encodeResults(results: readonly Buffer[], signal: AbortSignal): Promise<string> {
  const parts: string[] = [];
  let at = 0;
  while (at < results.length) {
    if (at > 0) {
      await nextTurn();
      if (signal.aborted) throw abandoned();
    }
    writer.clear();
    for (let bytes = 0; at < results.length && bytes < TURN_BYTES; at++) {
      if (at > 0) writer.byte(COMMA);
      const result = results[at]!;
      bytes += result.length;
      addResult(result);
    }
    parts.push(writer.text());
  }
  return `[${parts.join('')}]`;
}

function addResult(result: Buffer): void {
  const { place } = writer;
  writer.reserve(result.length);
  if (writer.document(result) && writer.isTextSince(place)) return;
  writer.cutTo(place);
  writer.append(JSON.stringify(presentValue(decodeDocument(result))));
}

/** Numbers that JSON cannot hold exactly become texts; dates and identifiers are left to JSON. */
function presentValue(value: unknown): unknown {
  if (typeof value === 'bigint') return String(value);
  if (typeof value !== 'object' || value === null || value instanceof Date) return value;
  if (Array.isArray(value)) return value.map(presentValue);
  if ('_bsontype' in value) return EXACT_NUMBERS.has(value._bsontype) ? String(value) : value;
  return Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, presentValue(inner)]));
}
