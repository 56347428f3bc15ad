import { type Doc, isDocument } from '../codec/document.js';
import { compileWith, type ExpressionContext } from '../query/expression.js';
import type { Compiled, Scope } from '../query/operators/operator.js';
import { isNullish, typeOf } from '../query/values/value.js';

/** A filter at the start of a pipeline, split by who can answer it. */
export interface LeadingFilter {
  /** The part that the collection can answer by itself; null = nothing. */
  readonly pushed: Doc | null;
  /** True when the collection's answer has to be filtered again. */
  readonly isPartial: boolean;
  /** The part that the collection can answer, given the variables' values of this run. */
  forRun(scope: Scope): Doc | null;
}

/** An equality of a field with an expression of variables, found in an `$expr`. */
interface Equality {
  readonly path: string;
  readonly value: Compiled;
}

/**
 * Splits a filter: conditions that use variables of an enclosing pipeline stay behind, but equalities among them
 * narrow the search once the variables have values, so that an index can serve a correlated join.
 */
export function splitLeadingFilter(filter: Doc, environment: ExpressionContext): LeadingFilter {
  if (environment.variables.size === 0 && environment.constants.size === 0) {
    return { pushed: filter, isPartial: false, forRun: () => filter };
  }
  const free: Doc[] = [];
  const equalities: Equality[] = [];
  let isPartial = false;
  for (const part of conjunctsOf(filter)) {
    if (!usesVariables(part, environment)) {
      free.push(part);
      continue;
    }
    isPartial = true;
    if (Object.hasOwn(part, '$expr')) equalities.push(...equalitiesOf(part['$expr'], environment));
  }
  const pushed = free.length === 0 ? null : free.length === 1 ? free[0]! : { $and: free };
  return {
    pushed,
    isPartial,
    forRun(scope) {
      const narrowed = equalities.flatMap(({ path, value }) => {
        const operand = value.evaluate({}, scope);
        // Only a plain value means the same in a filter as in an expression.
        if (isNullish(operand) || Array.isArray(operand) || typeOf(operand) === 'regex') return [];
        return [{ [path]: { $eq: operand } }];
      });
      const all = [...free, ...narrowed];
      return all.length === 0 ? null : all.length === 1 ? all[0]! : { $and: all };
    },
  };
}

function conjunctsOf(filter: Doc): Doc[] {
  return Object.keys(filter).flatMap((name): Doc[] => {
    const value = filter[name];
    if (name === '$and' && Array.isArray(value)) return (value as Doc[]).flatMap(conjunctsOf);
    return [{ [name]: value }];
  });
}

function usesVariables(value: unknown, environment: ExpressionContext): boolean {
  if (typeof value === 'string') {
    const name = /^\$\$([^.]+)/.exec(value)?.[1];
    return name !== undefined && (environment.variables.has(name) || environment.constants.has(name));
  }
  if (Array.isArray(value)) return value.some((item) => usesVariables(item, environment));
  return isDocument(value) && Object.keys(value).some((name) => usesVariables(value[name], environment));
}

function equalitiesOf(expression: unknown, environment: ExpressionContext): Equality[] {
  if (!isDocument(expression)) return [];
  const parts = expression['$and'];
  if (Array.isArray(parts)) return parts.flatMap((part) => equalitiesOf(part, environment));
  const operands = expression['$eq'];
  if (!Array.isArray(operands) || operands.length !== 2) return [];
  for (const [field, other] of [operands, [operands[1], operands[0]]] as [unknown, unknown][]) {
    if (typeof field !== 'string' || !/^\$[^$]/.test(field) || !usesVariables(other, environment)) continue;
    const { result, fields } = compileWith(environment, (compiler) => compiler.compile(other));
    if (fields?.size === 0) return [{ path: field.slice(1), value: result }];
  }
  return [];
}
