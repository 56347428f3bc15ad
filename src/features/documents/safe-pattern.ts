import { RE2JS } from 're2js';
import { isAmbiguous } from './pattern-ambiguity.js';

/**
 * Refuses a pattern that does not compile, or on which a backtracking matcher could take time exponential (or a high power) in the text's length.
 * The service's own engine matches in linear time; MongoDB's does not. `refuse` makes the error from the rest of a sentence.
 */
export function requireSafePattern(pattern: string, refuse: (problem: string) => Error): void {
  try {
    RE2JS.compile(pattern, RE2JS.CASE_INSENSITIVE);
  } catch {
    throw refuse(
      'is not a usable pattern: check its brackets and escapes; look-around and back-references are not supported',
    );
  }
  if (isAmbiguous(pattern)) {
    throw refuse(
      'could take too long: it repeats something that can match the same text in several ways, as in (a+)+ or (a|ab)*',
    );
  }
}
