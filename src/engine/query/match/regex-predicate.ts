import type { BSONRegExp } from 'bson';
import { type Predicate } from './match-operators.js';
import { compilePattern } from '../patterns/regex.js';
import { typeOf } from '../values/value.js';

/** Text that the pattern finds, or the same regular expression as a value. */
export function regexPredicate(pattern: string, options: string): Predicate {
  const compiled = compilePattern(pattern, options, 2);
  const sorted = [...options].sort().join('');
  return {
    kind: 'leaf',
    leafArrays: true,
    single(value) {
      if (typeof value === 'string') return compiled.test(value);
      if (typeof value !== 'object' || value === null) return false;
      const type = typeOf(value);
      if (type === 'symbol') return compiled.test((value as { value: string }).value);
      if (type !== 'regex') return false;
      const other = value as BSONRegExp;
      return other.pattern === pattern && [...other.options].sort().join('') === sorted;
    },
  };
}
