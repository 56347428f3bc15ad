import { invalid, type AppError } from '../../../errors.js';
import { judgePattern, MAX_PATTERN_POSITIONS } from './safe-pattern.js';

/** Regular expressions of one request. */
const MAX_PATTERNS = 20;
/** Characters of all of them together. */
const MAX_PATTERN_CHARACTERS_IN_ALL = 2000;
/** Values of a pipeline: keys of objects and items of lists at every depth. */
const MAX_PIPELINE_VALUES = 5000;
/** Branches of $or, $and, $nor and $switch of a pipeline, at every depth. */
const MAX_QUERY_BRANCHES = 1000;
/** Levels of lists and objects of a pipeline. */
export const MAX_PIPELINE_LEVELS = 32;
/**
 * The work that one request may still ask for (decision 12), counted by number and size before any of it is done. Each
 * refusal is 400 with a code of its own and names the limit.
 */
export class WorkBudget {
  #patterns = 0;
  #characters = 0;
  #positions = 0;
  #values = 0;
  #branches = 0;

  /**
   * Counts patterns, then judges them; `refuse` makes the error for one that cannot be used from the rest of a
   * sentence.
   */
  takePatterns(patterns: readonly string[], refuse: (problem: string) => Error): void {
    this.#patterns += patterns.length;
    if (this.#patterns > MAX_PATTERNS) {
      throw invalid('TOO_MANY_PATTERNS', `A request may hold at most ${MAX_PATTERNS} patterns`);
    }
    for (const pattern of patterns) this.#characters += pattern.length;
    if (this.#characters > MAX_PATTERN_CHARACTERS_IN_ALL) {
      throw invalid(
        'PATTERNS_TOO_LONG',
        `The patterns of a request may have at most ${MAX_PATTERN_CHARACTERS_IN_ALL} characters in all`,
      );
    }
    for (const pattern of patterns) {
      const { positions, problem } = judgePattern(pattern);
      this.#positions += positions;
      if (this.#positions > MAX_PATTERN_POSITIONS) throw patternTooLarge();
      if (problem !== null) throw refuse(problem);
    }
  }

  takeValues(count: number): void {
    this.#values += count;
    if (this.#values > MAX_PIPELINE_VALUES) {
      throw invalid('TOO_MANY_VALUES', `A pipeline may hold at most ${MAX_PIPELINE_VALUES} values`);
    }
  }

  takeBranches(count: number): void {
    this.#branches += count;
    if (this.#branches > MAX_QUERY_BRANCHES) {
      throw invalid(
        'TOO_MANY_BRANCHES',
        `The $or, $and, $nor and $switch of a pipeline may have at most ${MAX_QUERY_BRANCHES} branches in all: $in compares with many values`,
      );
    }
  }
}

function patternTooLarge(): AppError {
  return invalid(
    'PATTERN_TOO_LARGE',
    `The patterns of a request may match at most ${MAX_PATTERN_POSITIONS} characters in all, counts such as {0,100} written out`,
  );
}
