import type { BSONRegExp } from 'bson';
import type { Predicate } from './match-operators.js';
import { compilePattern } from '../patterns/regex.js';
import { typeOf } from '../values/value.js';

/** The values that a pattern with a literal beginning can find: texts that begin so, and the pattern itself. */
export interface PrefixOperand {
  readonly text: string;
  readonly pattern: string;
  readonly options: string;
}

/** Text that the pattern finds, or the same regular expression as a value. */
export function regexPredicate(pattern: string, options: string): Predicate {
  const compiled = compilePattern(pattern, options);
  const sorted = [...options].sort().join('');
  const prefix = literalPrefix(pattern, options);
  const test =
    prefix?.complete === true
      ? (text: string): boolean => text.startsWith(prefix.text)
      : (text: string): boolean => compiled.test(text);
  const leaf: Predicate = {
    kind: 'leaf',
    leafArrays: true,
    single(value) {
      if (typeof value === 'string') return test(value);
      if (typeof value !== 'object' || value === null) return false;
      const type = typeOf(value);
      if (type === 'symbol') return test((value as { value: string }).value);
      if (type !== 'regex') return false;
      const other = value as BSONRegExp;
      return other.pattern === pattern && [...other.options].sort().join('') === sorted;
    },
  };
  if (prefix === null) return leaf;
  const operand: PrefixOperand = { text: prefix.text, pattern, options };
  return { ...leaf, conjuncts: [{ op: 'prefix', value: operand }], residual: !prefix.complete };
}

/** True if finding out about a single text may take long: not when only its beginning is compared. */
export function isSlowPattern(predicate: Predicate): boolean {
  return predicate.conjuncts === undefined || predicate.residual === true;
}

/** With what every text that a pattern finds begins. */
interface LiteralPrefix {
  readonly text: string;
  /** Every text that begins so is found. */
  readonly complete: boolean;
}

const SPECIAL = /[\\^$.|?*+()[\]{}]/;
const QUANTIFIER = /[?*+{]/;
/** Letters of another case are other characters, and some beyond ASCII are the other case of one in it. */
const CASELESS = /[ -@[-`{-~]/;

/**
 * The literal beginning of a pattern that is anchored by `^`; null when it has none that all of its matches share. Says
 * less than there is, never more.
 */
function literalPrefix(pattern: string, options: string): LiteralPrefix | null {
  if (!pattern.startsWith('^') || /[^isu]/.test(options) || pattern.includes('|')) return null;
  const characters = [...pattern].slice(1);
  const anyCase = options.includes('i');
  let text = '';
  let at = 0;
  for (let last = 0; at < characters.length; last = at) {
    const literal = literalAt(characters, at);
    if (literal === null || (anyCase && !CASELESS.test(literal.text)) || /[\ud800-\udfff]/u.test(literal.text)) break;
    at += literal.length;
    if (at < characters.length && QUANTIFIER.test(characters[at]!)) {
      at = last;
      break;
    }
    text += literal.text;
  }
  if (text === '') return null;
  const rest = characters.slice(at).join('');
  return { text, complete: rest === '' || rest === '.*' };
}

function literalAt(characters: readonly string[], at: number): { text: string; length: number } | null {
  const first = characters[at]!;
  if (!SPECIAL.test(first)) return { text: first, length: 1 };
  const escaped = characters[at + 1];
  if (first !== '\\' || escaped === undefined || /[A-Za-z0-9]/.test(escaped) || escaped > '\x7f') return null;
  return { text: escaped, length: 2 };
}
