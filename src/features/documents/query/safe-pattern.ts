import { RE2JS } from 're2js';
import { readPattern } from './pattern-ambiguity.js';

/** The verdict on a pattern. */
export interface PatternVerdict {
  /** The cost of compiling it, in positions (`readPattern`). */
  positions: number;
  /** The rest of a sentence that says why it may not be used; null = it may. */
  problem: string | null;
}

/** Positions of one pattern: 1,000 repetitions of a character, as many as RE2 takes, a few times over. */
export const MAX_PATTERN_POSITIONS = 4000;
const MAX_REMEMBERED = 500;
const verdicts = new Map<string, PatternVerdict>();

/**
 * Judges whether a pattern compiles, and whether a backtracking matcher (MongoDB's) could take time exponential, or a
 * high power, in the text's length. Verdicts are remembered; patterns that are slow to judge are refused first
 * (decision 12).
 */
export function judgePattern(pattern: string): PatternVerdict {
  const known = verdicts.get(pattern);
  if (known) {
    // The one that was asked for longest ago is forgotten first.
    verdicts.delete(pattern);
    verdicts.set(pattern, known);
    return known;
  }
  const verdict = judge(pattern);
  if (verdicts.size >= MAX_REMEMBERED) verdicts.delete(verdicts.keys().next().value!);
  verdicts.set(pattern, verdict);
  return verdict;
}

function judge(pattern: string): PatternVerdict {
  const { positions, isAmbiguous } = readPattern(pattern);
  return { positions, problem: positions > MAX_PATTERN_POSITIONS ? null : findProblem(pattern, isAmbiguous) };
}

function findProblem(pattern: string, isAmbiguous: () => boolean): string | null {
  try {
    RE2JS.compile(pattern, RE2JS.CASE_INSENSITIVE);
  } catch {
    return 'is not a usable pattern: check its brackets and escapes; look-around and back-references are not supported';
  }
  return isAmbiguous()
    ? 'could take too long: it repeats something that can match the same text in several ways, as in (a+)+ or (a|ab)*'
    : null;
}
