import { RE2JS } from 're2js';

const MAX_PATTERN_CHARACTERS = 500;
/** Instructions of a compiled pattern: what matching one character may cost at worst. */
const MAX_PATTERN_SIZE = 1000;
const MAX_REMEMBERED = 500;

interface FieldPattern {
  test: (text: string) => boolean;
  size: number;
}

const known = new Map<string, FieldPattern>();

/** A pattern that patternProblem finds no fault with, ready to match in time linear in the text. */
export function compileFieldPattern(pattern: string): FieldPattern {
  let compiled = known.get(pattern);
  if (!compiled) {
    const read = RE2JS.compile(pattern);
    compiled = { test: (text) => read.test(text), size: read.programSize() };
    if (known.size >= MAX_REMEMBERED) known.clear();
    known.set(pattern, compiled);
  }
  return compiled;
}

/** Why a text cannot be the pattern of a field; null = it can. */
export function patternProblem(pattern: string): string | null {
  if (pattern.length > MAX_PATTERN_CHARACTERS) return `must have at most ${MAX_PATTERN_CHARACTERS} characters`;
  try {
    return RE2JS.compile(pattern).programSize() > MAX_PATTERN_SIZE
      ? 'repeats too much: shorten its {counts}, or use maxLength'
      : null;
  } catch {
    return 'is not a usable pattern: check its brackets and escapes; look-around and back-references are not supported';
  }
}
