import type { Decimal128, Long } from 'bson';
import { JsonWriter } from '../../../platform/database/bson-json.js';
import { decodeStored } from './encode-document.js';

const EXACT_NUMBERS: ReadonlySet<unknown> = new Set(['Decimal128', 'Long']);
/** About so much of BSON becomes one part: a millisecond or two. */
const PART_BYTES = 256 * 1024;
const OPEN = 0x5b;
const CLOSE = 0x5d;
const COMMA = 0x2c;

const writer = new JsonWriter(true);

/** The JSON array of what a pipeline yielded, as `latin1` text in parts, each made when it is asked for. */
export function* encodeResults(results: readonly Buffer[]): Generator<string> {
  let at = 0;
  do {
    writer.clear();
    if (at === 0) writer.byte(OPEN);
    for (let bytes = 0; at < results.length && bytes < PART_BYTES; at++) {
      if (at > 0) writer.byte(COMMA);
      const result = results[at]!;
      bytes += result.length;
      addResult(result);
    }
    if (at === results.length) writer.byte(CLOSE);
    yield writer.text();
  } while (at < results.length);
}

function addResult(result: Buffer): void {
  const { place } = writer;
  writer.reserve(result.length);
  if (writer.document(result) && writer.isTextSince(place)) return;
  writer.cutTo(place);
  writer.append(JSON.stringify(presentValue(decodeStored(result))));
}

/** Numbers that JSON cannot hold exactly become texts; dates and identifiers are left to JSON. */
function presentValue(value: unknown): unknown {
  if (typeof value === 'bigint') return String(value);
  if (typeof value !== 'object' || value === null || value instanceof Date) return value;
  if (Array.isArray(value)) return value.map(presentValue);
  if ('_bsontype' in value) return EXACT_NUMBERS.has(value._bsontype) ? (value as Decimal128 | Long).toString() : value;
  return Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, presentValue(inner)]));
}
