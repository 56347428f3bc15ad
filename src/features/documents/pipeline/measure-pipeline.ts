import { GEO_CONDITIONS } from './expression-operators.js';
import { HIDDEN_FIELD, UNSAFE_NAMES } from '../../collections/fields/field.js';
import { isJsonObject } from '../../collections/fields/field-type.js';
import { PATTERN_OPERATORS } from './expression-operators.js';
import { badPipeline } from './pipeline-problems.js';
import { MAX_PIPELINE_LEVELS, WorkBudget } from '../query/work-budget.js';

/** Keys whose lists are branches: each is tried, and most of them are compiled, one by one. */
const BRANCHING: ReadonlySet<string> = new Set(['$and', '$or', '$nor', 'branches']);

/** For each of them the cells that cover it are computed. */
const MAX_REGIONS = 50;

/**
 * One walk over a client's pipeline before anything else looks at it: its values, levels, branches and patterns are
 * counted against the budget of one request, and keys that no document can have, NUL characters and the service's own
 * notes by name are refused. 400.
 */
export function measurePipeline(pipeline: readonly unknown[]): void {
  const budget = new WorkBudget();
  const patterns: string[] = [];
  let regions = 0;
  const walk = (value: unknown, key: string, level: number): void => {
    if (typeof value === 'string') {
      if (key === '$regex') patterns.push(value);
      return refuseText(value);
    }
    if (typeof value !== 'object' || value === null) return;
    if (level > MAX_PIPELINE_LEVELS) {
      throw badPipeline(`A pipeline may be nested at most ${MAX_PIPELINE_LEVELS} levels deep`);
    }
    if (Array.isArray(value)) {
      budget.takeValues(value.length);
      if (BRANCHING.has(key)) budget.takeBranches(value.length);
      for (const item of value) walk(item, '', level + 1);
      return;
    }
    const keys = Object.keys(value);
    budget.takeValues(keys.length);
    if (PATTERN_OPERATORS.has(key) && isJsonObject(value) && typeof value.regex === 'string') {
      patterns.push(value.regex);
    }
    for (const inner of keys) {
      refuseKey(inner);
      if (GEO_CONDITIONS.has(inner) && ++regions > MAX_REGIONS) {
        throw badPipeline(`A pipeline may have at most ${MAX_REGIONS} $geoWithin and $geoIntersects`);
      }
      walk((value as Record<string, unknown>)[inner], inner, level + 1);
    }
  };
  walk(pipeline, '', 0);
  budget.takePatterns(patterns, (problem) => badPipeline(`A pattern ${problem}`));
}

function refuseKey(key: string): void {
  if (UNSAFE_NAMES.has(key)) throw badPipeline(`A pipeline must not contain the key ${JSON.stringify(key)}`);
  refuseText(key);
}

/**
 * Refuses the hidden field by name, as `$name` or as part of a path; a path built at run time finds nothing, because
 * the field is removed before.
 */
function refuseText(text: string): void {
  if (text.includes('\0')) throw badPipeline('A pipeline must not contain NUL characters');
  if (text.includes(HIDDEN_FIELD) && text.split(/[.$]/).includes(HIDDEN_FIELD)) {
    throw badPipeline(`A pipeline must not name ${JSON.stringify(text.slice(0, 60))}`);
  }
}
