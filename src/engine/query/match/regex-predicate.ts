import type { BSONRegExp } from 'bson';
import type { Predicate } from './match-operators.js';
import { literalPrefix } from '../patterns/literal-prefix.js';
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
