import type { BSONRegExp, BSONSymbol } from 'bson';
import { EngineError, refusal } from '../../errors.js';
import { compilePattern, type Found, type Pattern } from '../regex.js';
import { compareStrings } from '../compare.js';
import { type Doc, integerOf, isNullish, isNumber, numberOf, typeOf } from '../value.js';
import { binary, type ExpressionOperator, named, type OperatorTable, unary, variadic } from './operator.js';
import { convertToString } from './convert.js';

/** What string operators accept besides text: null and missing as the empty string, numbers and dates as their text. */
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
  return new EngineError(10334, `${name} would make a string of more than 16 MB`);
}

function asciiCase(pattern: RegExp, shift: number): (text: string) => string {
  return (text) => text.replace(pattern, (char) => String.fromCharCode(char.charCodeAt(0) + shift));
}

const lower = asciiCase(/[A-Z]/g, 32);
const upper = asciiCase(/[a-z]/g, -32);

function isContinuation(byte: number | undefined): boolean {
  return byte !== undefined && (byte & 0xc0) === 0x80;
}

function substringBytes(value: unknown, from: unknown, length: unknown): string {
  const bytes = Buffer.from(coerce(value, '$substrBytes'));
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

function substringPoints(value: unknown, from: unknown, length: unknown): string {
  const text = coerce(value, '$substrCP');
  const start = requireInteger(from, '$substrCP', 34450);
  const count = requireInteger(length, '$substrCP', 34452);
  if (start < 0) throw refusal(34455, '$substrCP: the starting index must be nonnegative integer.');
  if (count < 0) throw refusal(34456, '$substrCP: length must be a nonnegative integer.');
  return [...text].slice(start, start + count).join('');
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

/** `toUnits` decides whether positions count bytes or code points. */
function indexOf(name: string, toUnits: (text: string) => readonly (string | number)[]): ExpressionOperator {
  return variadic(
    ([value, wanted, from, to]) => {
      if (isNullish(value)) return null;
      const units = toUnits(requireString(value, name, 40091));
      const search = toUnits(requireString(wanted, name, 40092));
      const start = from === undefined ? 0 : position(from, name);
      const end = Math.min(to === undefined ? units.length : position(to, name), units.length);
      for (let i = start; i + search.length <= end; i++) {
        if (search.every((unit, k) => units[i + k] === unit)) return i;
      }
      return -1;
    },
    2,
    4,
  );
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
  return named(['input'], ['chars'], ({ input, chars }, given) => {
    if (isNullish(input)) return null;
    const text = [...requireString(input, name, 50699)];
    if (given.has('chars') && isNullish(chars)) return null;
    const set = given.has('chars') ? new Set(requireString(chars, name, 50700)) : WHITE_SPACE;
    let start = 0;
    let end = text.length;
    while (left && start < end && set.has(text[start]!)) start++;
    while (right && end > start && set.has(text[end - 1]!)) end--;
    return text.slice(start, end).join('');
  });
}

function replace(name: string, all: boolean): ExpressionOperator {
  return named(['input', 'find', 'replacement'], [], ({ input, find, replacement }) => {
    const text = isNullish(input) ? null : requireString(input, name, 51746);
    const wanted = isNullish(find) ? null : requireString(find, name, 51745);
    const other = isNullish(replacement) ? null : requireString(replacement, name, 51744);
    if (text === null || wanted === null || other === null) return null;
    if (!all) return text.replace(wanted, () => other);
    const parts = text.split(wanted);
    if (text.length + parts.length * other.length > MAX_TEXT) throw tooLong(name);
    return parts.join(other);
  });
}

function regexOperator(
  name: string,
  absent: () => unknown,
  apply: (pattern: Pattern, text: string) => unknown,
): ExpressionOperator {
  return named(['input', 'regex'], ['options'], ({ input, regex, options }) => {
    const text = isNullish(input) ? null : requireString(input, name, 51104);
    const pattern = patternOf(regex, options, name);
    return text === null || pattern === null ? absent() : apply(pattern, text);
  });
}

function patternOf(regex: unknown, options: unknown, name: string): Pattern | null {
  if (isNullish(regex)) return null;
  if (!isNullish(options) && typeof options !== 'string')
    throw refusal(51106, `${name} needs 'options' to be a string`);
  if (typeof regex === 'string') return compilePattern(regex, options ?? '');
  if (typeOf(regex) !== 'regex') throw refusal(51105, `${name} needs 'regex' to be of type string or regex`);
  const { pattern, options: own } = regex as BSONRegExp;
  if (own !== '' && !isNullish(options))
    throw refusal(51107, `${name} found regex options specified in both 'regex' and 'options'`);
  return compilePattern(pattern, own === '' ? (options ?? '') : own);
}

/** How many code points lie before a UTF-16 offset. */
function pointsBefore(text: string, offset: number): number {
  let points = 0;
  for (let i = 0; i < offset; points++) i += text.codePointAt(i)! > 0xffff ? 2 : 1;
  return points;
}

function present(text: string, found: Found, points: number): Doc {
  return { match: text.slice(found.start, found.end), idx: points, captures: [...found.groups] };
}

function findAll(pattern: Pattern, text: string): Doc[] {
  const results: Doc[] = [];
  let points = 0;
  let counted = 0;
  let at = 0;
  while (at <= text.length) {
    const found = pattern.find(text, at);
    if (found === null) break;
    points += pointsBefore(text.slice(counted, found.start), found.start - counted);
    counted = found.start;
    results.push(present(text, found, points));
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
  $toLower: unary((value) => lower(coerce(value, '$toLower'))),
  $toUpper: unary((value) => upper(coerce(value, '$toUpper'))),
  $strcasecmp: binary((a, b) => compareStrings(upper(coerce(a, '$strcasecmp')), upper(coerce(b, '$strcasecmp')))),
  $substr: variadic(([value, from, length]) => substringBytes(value, from, length), 3, 3),
  $substrBytes: variadic(([value, from, length]) => substringBytes(value, from, length), 3, 3),
  $substrCP: variadic(([value, from, length]) => substringPoints(value, from, length), 3, 3),
  $strLenBytes: unary((value) => Buffer.byteLength(requireString(value, '$strLenBytes', 34473))),
  $strLenCP: unary((value) => [...requireString(value, '$strLenCP', 34471)].length),
  $indexOfBytes: indexOf('$indexOfBytes', (text) => [...Buffer.from(text)]),
  $indexOfCP: indexOf('$indexOfCP', (text) => [...text]),
  $split: binary((value, separator) => {
    if (isNullish(value) || isNullish(separator)) return null;
    const text = requireString(value, '$split', 40085);
    const by = requireString(separator, '$split', 40086);
    if (by === '') throw refusal(40087, '$split requires a non-empty separator');
    return text.split(by);
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
