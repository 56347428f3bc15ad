import type { BSONRegExp, BSONSymbol } from 'bson';
import type { Doc } from '../../codec/document.js';
import { CODES, EngineError, refusal } from '../../errors.js';
import { compilePattern, type Found, type Pattern } from '../patterns/regex.js';
import { compareStrings } from '../values/compare.js';
import { integerOf, isNullish, isNumber, numberOf, typeOf } from '../values/value.js';
import { addWeight, MAX_ITEMS } from '../values/weight.js';
import { convertToString } from './convert.js';
import {
  binary,
  countText,
  type ExpressionOperator,
  named,
  type OperatorTable,
  type Scope,
  unary,
  variadic,
} from './operator.js';
import { openTextSearch } from '../patterns/text-search.js';

/** Takes null and missing for the empty string, numbers and dates for their text; 16007 for anything else but text. */
function coerce(value: unknown, name: string): string {
  if (typeof value === 'string') return value;
  if (isNullish(value)) return '';
  const type = typeOf(value);
  if (type === 'symbol') return (value as BSONSymbol).value;
  if (type === 'date' || isNumber(value)) return convertToString(value);
  throw refusal(16007, `can't convert from BSON type ${type} to String in ${name}`);
}

/** A string that fits no document is of no use. */
const MAX_TEXT = 16 * 1024 * 1024;

function tooLong(name: string): EngineError {
  return new EngineError(CODES.BSONObjectTooLarge, `${name} would make a string of more than 16 MB`);
}

/** Changes ASCII letters only; runs of them, since a call for each takes a second for a long text. */
function asciiCase(letters: RegExp, change: (run: string) => string): (text: string, scope: Scope) => string {
  return (text, scope) => {
    countText(scope, text);
    return text.replace(letters, change);
  };
}

const lower = asciiCase(/[A-Z]+/g, (run) => run.toLowerCase());
const upper = asciiCase(/[a-z]+/g, (run) => run.toUpperCase());

function isContinuation(byte: number | undefined): boolean {
  return byte !== undefined && (byte & 0xc0) === 0x80;
}

function substringBytes([value, from, length]: readonly unknown[], scope: Scope): string {
  const text = coerce(value, '$substrBytes');
  countText(scope, text);
  const bytes = Buffer.from(text);
  const start = requireInteger(from, '$substrBytes', 16034);
  const count = requireInteger(length, '$substrBytes', 16035);
  if (start < 0) throw refusal(50752, '$substrBytes: starting index must be non-negative');
  if (isContinuation(bytes[start])) {
    throw refusal(28656, '$substrBytes: Invalid range, starting index is a UTF-8 continuation byte.');
  }
  const end = count < 0 ? bytes.length : Math.min(bytes.length, start + count);
  if (isContinuation(bytes[end])) {
    throw refusal(28657, '$substrBytes: Invalid range, ending index is in the middle of a UTF-8 character.');
  }
  return bytes.toString('utf8', start, Math.max(start, end));
}

function substringPoints([value, from, length]: readonly unknown[], scope: Scope): string {
  const text = coerce(value, '$substrCP');
  countText(scope, text);
  const start = requireInteger(from, '$substrCP', 34450);
  const count = requireInteger(length, '$substrCP', 34452);
  if (start < 0) throw refusal(34455, '$substrCP: the starting index must be nonnegative integer.');
  if (count < 0) throw refusal(34456, '$substrCP: length must be a nonnegative integer.');
  const offset = offsetAfter(text, start);
  return text.slice(offset, offsetAfter(text, count, offset));
}

function requireInteger(value: unknown, name: string, code: number): number {
  const number = isNumber(value) ? numberOf(value)! : null;
  if (number === null) throw refusal(code, `${name}: index and length must be numbers, not ${typeOf(value)}`);
  return Math.trunc(number);
}

function requireString(value: unknown, name: string, code: number): string {
  if (typeof value === 'string') return value;
  if (typeOf(value) === 'symbol') return (value as BSONSymbol).value;
  throw refusal(code, `${name} requires a string, found: ${typeOf(value)}`);
}

/** With `inBytes` positions count bytes, otherwise code points. */
function indexOf(name: string, inBytes: boolean): ExpressionOperator {
  return variadic(
    ([value, wanted, from, to], scope) => {
      if (isNullish(value)) return null;
      const [text, search] = [requireString(value, name, 40091), requireString(wanted, name, 40092)];
      countText(scope, text);
      const first = from === undefined ? 0 : position(from, name);
      const last = to === undefined ? Infinity : position(to, name);
      if (inBytes) return indexWithin(byteText(text), byteText(search), first, last);
      if (first > text.length) return -1;
      const found = indexWithin(text, search, offsetAfter(text, first), offsetAfter(text, last));
      return found <= 0 ? found : pointsBefore(text, found);
    },
    2,
    4,
  );
}

function indexWithin(text: string, wanted: string, from: number, to: number): number {
  return from > to || from > text.length ? -1 : openTextSearch(wanted).indexIn(text.slice(0, to), from);
}

/** A text of which each character is one byte of the given one's UTF-8. */
function byteText(text: string): string {
  return Buffer.from(text).toString('latin1');
}

function position(value: unknown, name: string): number {
  const number = integerOf(value);
  if (number === null) throw refusal(40096, `${name} requires an integral starting or ending index`);
  if (number < 0) throw refusal(40097, `${name} requires a nonnegative index, found: ${String(number)}`);
  return number;
}

const WHITE_SPACE = new Set(
  '\0 \t\n\v\f\r\u00a0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a',
);

function trim(name: string, left: boolean, right: boolean): ExpressionOperator {
  return named(['input'], ['chars'], ({ input, chars }, given, scope) => {
    if (isNullish(input)) return null;
    const text = requireString(input, name, 50699);
    countText(scope, text);
    if (given.has('chars') && isNullish(chars)) return null;
    const set = given.has('chars') ? new Set(requireString(chars, name, 50700)) : WHITE_SPACE;
    let start = 0;
    let end = text.length;
    while (left && start < end) {
      const point = String.fromCodePoint(text.codePointAt(start)!);
      if (!set.has(point)) break;
      start += point.length;
    }
    while (right && end > start) {
      const pair = text.slice(Math.max(start, end - 2), end);
      const point = pair.codePointAt(0)! > 0xffff ? pair : pair.slice(-1);
      if (!set.has(point)) break;
      end -= point.length;
    }
    return text.slice(start, end);
  });
}

function replace(name: string, all: boolean): ExpressionOperator {
  return named(['input', 'find', 'replacement'], [], ({ input, find, replacement }, _given, scope) => {
    const text = isNullish(input) ? null : requireString(input, name, 51746);
    const wanted = isNullish(find) ? null : requireString(find, name, 51745);
    const other = isNullish(replacement) ? null : requireString(replacement, name, 51744);
    if (text === null || wanted === null || other === null) return null;
    countText(scope, text);
    // The empty text is found at both ends and between any two characters.
    const parts = wanted === '' ? null : splitText(text, wanted, all ? Infinity : 2);
    const places = parts?.length ?? (all ? text.length + 1 : 1);
    if (text.length + places * other.length > MAX_TEXT) throw tooLong(name);
    return parts?.join(other) ?? (all ? text.replace(/(?:)/gu, () => other) : other + text);
  });
}

/** Cuts a text at each place of a separator, the last of at most `most` parts being the rest. */
function splitText(text: string, separator: string, most: number): string[] {
  const search = openTextSearch(separator);
  const parts: string[] = [];
  let start = 0;
  while (parts.length < most - 1) {
    const found = search.indexIn(text, start);
    if (found < 0) break;
    parts.push(text.slice(start, found));
    start = found + separator.length;
  }
  parts.push(text.slice(start));
  return parts;
}

function regexOperator(
  name: string,
  absent: () => unknown,
  apply: (pattern: Pattern, text: string, scope: Scope) => unknown,
): ExpressionOperator {
  return named(['input', 'regex'], ['options'], ({ input, regex, options }, _given, scope) => {
    const text = isNullish(input) ? null : requireString(input, name, 51104);
    const pattern = patternOf(regex, options, name);
    if (text === null || pattern === null) return absent();
    countText(scope, text);
    return apply(pattern, text, scope);
  });
}

function patternOf(regex: unknown, options: unknown, name: string): Pattern | null {
  if (isNullish(regex)) return null;
  if (!isNullish(options) && typeof options !== 'string') {
    throw refusal(51106, `${name} needs 'options' to be a string`);
  }
  if (typeof regex === 'string') return compilePattern(regex, options ?? '');
  if (typeOf(regex) !== 'regex') throw refusal(51105, `${name} needs 'regex' to be of type string or regex`);
  const { pattern, options: own } = regex as BSONRegExp;
  if (own !== '' && !isNullish(options)) {
    throw refusal(51107, `${name} found regex options specified in both 'regex' and 'options'`);
  }
  return compilePattern(pattern, own === '' ? (options ?? '') : own);
}

/** How many code points lie before a UTF-16 offset. */
function pointsBefore(text: string, offset: number): number {
  let points = 0;
  for (let i = 0; i < offset; points++) i += text.codePointAt(i)! > 0xffff ? 2 : 1;
  return points;
}

/**
 * The UTF-16 offset after a number of code points, counted from an offset; the text's end when there are fewer.
 */
function offsetAfter(text: string, points: number, from = 0): number {
  let offset = from;
  if (points >= text.length - from) return text.length;
  for (let left = points; left > 0 && offset < text.length; left--) {
    offset += text.codePointAt(offset)! > 0xffff ? 2 : 1;
  }
  return offset;
}

function present(text: string, found: Found, points: number): Doc {
  return { match: text.slice(found.start, found.end), idx: points, captures: [...found.groups] };
}

function findAll(pattern: Pattern, text: string, scope: Scope): Doc[] {
  const results: Doc[] = [];
  let weight = 0;
  let points = 0;
  let counted = 0;
  let at = 0;
  while (at <= text.length) {
    // A single search may have to go through the whole text.
    scope.guard(scope);
    const found = pattern.find(text, at);
    if (found === null) break;
    points += pointsBefore(text.slice(counted, found.start), found.start - counted);
    counted = found.start;
    const result = present(text, found, points);
    weight = addWeight(weight, result);
    results.push(result);
    at = found.end > found.start ? found.end : found.end + (text.codePointAt(found.end)! > 0xffff ? 2 : 1);
  }
  return results;
}

/** Text: parts, search, case and regular expressions. */
export const stringOperators: OperatorTable = {
  $concat: variadic((values) => {
    let text = '';
    for (const value of values) {
      if (isNullish(value)) return null;
      text += requireString(value, '$concat', 16702);
      if (text.length > MAX_TEXT) throw tooLong('$concat');
    }
    return text;
  }),
  $toLower: unary((value, scope) => lower(coerce(value, '$toLower'), scope)),
  $toUpper: unary((value, scope) => upper(coerce(value, '$toUpper'), scope)),
  $strcasecmp: binary((a, b, scope) =>
    compareStrings(upper(coerce(a, '$strcasecmp'), scope), upper(coerce(b, '$strcasecmp'), scope)),
  ),
  $substr: variadic(substringBytes, 3, 3),
  $substrBytes: variadic(substringBytes, 3, 3),
  $substrCP: variadic(substringPoints, 3, 3),
  $strLenBytes: unary((value) => Buffer.byteLength(requireString(value, '$strLenBytes', 34473))),
  $strLenCP: unary((value, scope) => {
    const text = requireString(value, '$strLenCP', 34471);
    countText(scope, text);
    return pointsBefore(text, text.length);
  }),
  $indexOfBytes: indexOf('$indexOfBytes', true),
  $indexOfCP: indexOf('$indexOfCP', false),
  $split: binary((value, separator, scope) => {
    if (isNullish(value) || isNullish(separator)) return null;
    const text = requireString(value, '$split', 40085);
    const by = requireString(separator, '$split', 40086);
    if (by === '') throw refusal(40087, '$split requires a non-empty separator');
    countText(scope, text);
    const parts = splitText(text, by, MAX_ITEMS);
    if (parts.length === MAX_ITEMS) {
      throw new EngineError(CODES.ExceededMemoryLimit, '$split would make too many parts');
    }
    return parts;
  }),
  $trim: trim('$trim', true, true),
  $ltrim: trim('$ltrim', true, false),
  $rtrim: trim('$rtrim', false, true),
  $replaceOne: replace('$replaceOne', false),
  $replaceAll: replace('$replaceAll', true),
  $regexMatch: regexOperator(
    '$regexMatch',
    () => false,
    (pattern, text) => pattern.test(text),
  ),
  $regexFind: regexOperator(
    '$regexFind',
    () => null,
    (pattern, text) => {
      const found = pattern.find(text, 0);
      return found === null ? null : present(text, found, pointsBefore(text, found.start));
    },
  ),
  $regexFindAll: regexOperator('$regexFindAll', () => [], findAll),
};
