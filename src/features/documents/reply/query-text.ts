import { invalid, type AppError } from '../../../errors.js';

/** The raw, still encoded values of each parameter, by decoded name, in the order in which they came. */
export type QueryText = ReadonlyMap<string, readonly string[]>;

const MAX_PARAMETERS = 200;

/**
 * Takes a query string apart without giving its text any structure: `a[b]=1` is a parameter named `a[b]`, a repeated
 * parameter is a list of texts. Values stay encoded, because a comma and `%2C` mean different things in a repeated list
 * (decisions.md 4).
 */
export function readQueryText(raw: string): QueryText {
  const parameters = new Map<string, string[]>();
  let count = 0;
  for (const part of raw.split('&')) {
    if (part === '') continue;
    if (++count > MAX_PARAMETERS) throw badQuery(`A query may have at most ${MAX_PARAMETERS} parameters`);
    const equals = part.indexOf('=');
    const name = decodeText(equals < 0 ? part : part.slice(0, equals), 'A parameter name');
    const value = equals < 0 ? '' : part.slice(equals + 1);
    const values = parameters.get(name);
    if (values) values.push(value);
    else parameters.set(name, [value]);
  }
  return parameters;
}

/** The text of a value; 400 when its percent encoding is broken. `what` begins the message. */
export function decodeText(raw: string, what: string): string {
  const text = ENCODED.test(raw) ? decodeEncoded(raw, what) : raw;
  if (text.includes('\0')) throw badQuery(`${what} contains a NUL character`);
  return text;
}

const ENCODED = /[%+]/;

function decodeEncoded(raw: string, what: string): string {
  try {
    return decodeURIComponent(raw.replaceAll('+', ' '));
  } catch {
    throw badQuery(`${what} is not properly percent-encoded`);
  }
}

/** The one value of a parameter, or null when it is not given; 400 when it is given more than once. */
export function findSingle(query: QueryText, name: string): string | null {
  const values = query.get(name);
  if (!values) return null;
  if (values.length > 1) throw badQuery(`${name} is given more than once`);
  return decodeText(values[0]!, name);
}

/** The parts of a comma-separated and/or repeatable parameter of names, such as `fields`; empty parts are 400. */
export function readNames(query: QueryText, name: string): string[] {
  const names = (query.get(name) ?? []).flatMap((raw) => decodeText(raw, name).split(','));
  return names.map((part) => {
    const trimmed = part.trim();
    if (trimmed === '') throw badQuery(`${name} must name at least one field, and none of its parts may be empty`);
    return trimmed;
  });
}

/** `true` or `false`; 400 for anything else. */
export function readFlag(query: QueryText, name: string, fallback: boolean): boolean {
  const text = findSingle(query, name);
  if (text === null) return fallback;
  if (text !== 'true' && text !== 'false') throw badQuery(`${name} must be true or false`);
  return text === 'true';
}

/** The largest that fifteen digits can say. */
const MAX_WHOLE = 999_999_999_999_999;

/** A whole number from `least` to `most`, written in plain digits; 400 names the bounds. */
export function readWholeNumber(query: QueryText, name: string, least: number, most = MAX_WHOLE): number | null {
  const text = findSingle(query, name);
  if (text === null) return null;
  const value = /^\d+$/.test(text) ? Number(text) : NaN;
  if (value >= least && value <= most) return value;
  const range = most === MAX_WHOLE && !(value > most) ? `of at least ${least}` : `from ${least} to ${most}`;
  throw badQuery(`${name} must be a whole number ${range}`);
}

/** 400 INVALID_QUERY; the text names the parameter. */
export function badQuery(message: string): AppError {
  return invalid('INVALID_QUERY', message);
}

/** A parameter or field name as quoted in a message: never longer than a line. */
export function quoted(text: string): string {
  return JSON.stringify(text.length > 60 ? `${text.slice(0, 60)}…` : text);
}
