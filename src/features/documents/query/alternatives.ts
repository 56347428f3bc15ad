import { badQuery, decodeText, quoted } from '../reply/query-text.js';

/** The parameter of a list whose value is alternatives: at least one of them must match. */
export const ALTERNATIVES = 'or';

const MAX_ALTERNATIVES = 20;
const MAX_FILTERS = 20;

/** A filter as a parameter has it: its name with a suffix, and its raw values. */
export type RawFilter = readonly [name: string, raw: readonly string[]];

/**
 * Reads the value of `or`: a JSON list of objects, each of them filters of which all must match, such as
 * `[{"status":"open"},{"views_gt":3}]`. Values are those of a query string, written as JSON; only filters that list
 * values take an array. 400 INVALID_QUERY.
 */
export function readAlternatives(raw: string): RawFilter[][] {
  const alternatives = parse(decodeText(raw, ALTERNATIVES));
  if (!Array.isArray(alternatives) || alternatives.length === 0) {
    throw badQuery(`${ALTERNATIVES} must be a JSON list of objects, such as [{"status":"open"},{"views_gt":3}]`);
  }
  if (alternatives.length > MAX_ALTERNATIVES) {
    throw badQuery(`${ALTERNATIVES} may have at most ${MAX_ALTERNATIVES} alternatives`);
  }
  return alternatives.map((alternative: unknown, at) => {
    const filters =
      typeof alternative === 'object' && alternative !== null && !Array.isArray(alternative)
        ? Object.entries(alternative)
        : [];
    if (filters.length === 0) throw badQuery(`${ALTERNATIVES}: alternative ${at + 1} must be an object with filters`);
    if (filters.length > MAX_FILTERS) {
      throw badQuery(`${ALTERNATIVES}: alternative ${at + 1} may have at most ${MAX_FILTERS} filters`);
    }
    return filters.map(([name, value]): RawFilter => [name, encodeValue(name, value)]);
  });
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}

/** A JSON value as the raw texts of a parameter. */
function encodeValue(name: string, value: unknown): string[] {
  if (!Array.isArray(value)) return [encodeScalar(name, value)];
  if (value.length === 0) throw badQuery(`${quoted(name)} needs at least one value`);
  const texts = value.map((item) => encodeScalar(name, item));
  // The commas of a text that is sent once separate values; of one that is repeated, encoded commas are part of it.
  return texts.length === 1 ? [texts[0]!, texts[0]!] : texts;
}

function encodeScalar(name: string, value: unknown): string {
  if (typeof value === 'object' && value !== null) {
    throw badQuery(`${quoted(name)} must be a text, a number, true, false or null, or a list of these with _in`);
  }
  try {
    return encodeURIComponent(String(value));
  } catch {
    throw badQuery(`${quoted(name)} is not valid Unicode`);
  }
}
