import { isJsonObject } from '../../collections/fields/field-type.js';
import { EXPRESSION_OPERATORS, META_KINDS, PATTERN_OPERATORS, SYSTEM_VARIABLES } from './expression-operators.js';
import {
  isWrapped,
  literalForms,
  readWrapped,
  type DocumentShape,
  badPipeline,
  refusedName,
} from './pipeline-literals.js';
import { judgePattern } from '../query/safe-pattern.js';

const COMPARISONS: ReadonlySet<string> = new Set(['$eq', '$ne', '$gt', '$gte', '$lt', '$lte', '$cmp']);
const MAX_PATTERN_CHARACTERS = 512;

/**
 * An aggregation expression as it may be run: only operators on the list at every depth, constants compared with `_id`
 * and Date fields typed. 400 otherwise.
 */
export function guardExpression(value: unknown, shape: DocumentShape): unknown {
  if (typeof value === 'string') return guardReference(value, shape);
  if (Array.isArray(value)) return value.map((item) => guardExpression(item, shape));
  if (!isJsonObject(value)) return value;
  if (isWrapped(value)) return readWrapped(value);
  const keys = Object.keys(value);
  const operator = keys.find((key) => key.startsWith('$'));
  if (operator === undefined) return guardNamed(value, shape);
  if (keys.length !== 1) {
    throw badPipeline(`An expression has one operator: ${keys.slice(0, 3).join(', ').slice(0, 100)} stand together`);
  }
  return guardOperator(operator, value[operator], shape);
}

/** The values of an object whose keys are names: fields of a document, or named arguments of an operator. */
export function guardNamed(value: Record<string, unknown>, shape: DocumentShape): Record<string, unknown> {
  return Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, guardExpression(inner, shape)]));
}

/** A pattern given as a constant, short and safe; 400 otherwise. */
export function requireConstantPattern(pattern: unknown, operator: string): string {
  if (typeof pattern !== 'string') throw badPipeline(`${operator} needs its pattern as a constant text`);
  if (pattern.length > MAX_PATTERN_CHARACTERS) {
    throw badPipeline(`${operator}: the pattern must be at most ${MAX_PATTERN_CHARACTERS} characters long`);
  }
  const { problem } = judgePattern(pattern);
  if (problem !== null) throw badPipeline(`${operator}: the pattern ${problem}`);
  return pattern;
}

/** Options under which the pattern still means what was checked. */
export function requirePatternOptions(options: unknown, operator: string): void {
  if (options !== undefined && (typeof options !== 'string' || !/^[ims]*$/.test(options))) {
    throw badPipeline(`${operator}: the options must be a text of i, m and s`);
  }
}

function guardOperator(operator: string, argument: unknown, shape: DocumentShape): unknown {
  if (!EXPRESSION_OPERATORS.has(operator)) throw refusedName(operator, 'operator');
  if (operator === '$literal') return { $literal: argument };
  if (operator === '$meta') {
    if (!META_KINDS.has(argument as string)) throw badPipeline(`$meta: must be one of ${[...META_KINDS].join(', ')}`);
    return { $meta: argument };
  }
  if (operator === '$getField') requireFieldSeen(argument, shape);
  if (PATTERN_OPERATORS.has(operator)) return guardPattern(operator, argument, shape);
  if (Array.isArray(argument) && argument.length === 2) {
    if (COMPARISONS.has(operator)) return guardComparison(operator, argument, shape);
    if (operator === '$in' && Array.isArray(argument[1])) return guardMembership(argument[0], argument[1], shape);
  }
  return { [operator]: guardExpression(argument, shape) };
}

/** Of a document that is at hand; what its name is computed of finds nothing either. */
function requireFieldSeen(argument: unknown, shape: DocumentShape): void {
  const { field, input = '$$CURRENT' } = isJsonObject(argument) && 'field' in argument ? argument : { field: argument };
  const name = constantText(field);
  if (name !== null && (input === '$$CURRENT' || input === '$$ROOT')) shape.requireSeen(name);
}

function guardPattern(operator: string, argument: unknown, shape: DocumentShape): unknown {
  if (!isJsonObject(argument)) throw badPipeline(`${operator} needs input and regex`);
  const { input, regex, options } = argument;
  // A leading $ would be read as a field, whose stored text is unchecked.
  if (typeof regex === 'string' && regex.startsWith('$')) {
    throw badPipeline(`${operator} needs its pattern as a constant text`);
  }
  requireConstantPattern(regex, operator);
  requirePatternOptions(options, operator);
  return { [operator]: { ...argument, input: guardExpression(input, shape) } };
}

function guardComparison(operator: string, [left, right]: unknown[], shape: DocumentShape): unknown {
  const swapped = findPath(left) === null;
  const path = findPath(swapped ? right : left);
  const [reference, constant] = swapped ? [right, left] : [left, right];
  const text = constantText(constant);
  if (path === null || text === null) {
    return { [operator]: [guardExpression(left, shape), guardExpression(right, shape)] };
  }
  const forms = literalForms(text, path, shape);
  const guarded = guardExpression(reference, shape);
  if (forms.length > 1 && operator === '$eq') return { $in: [guarded, forms] };
  if (forms.length > 1 && operator === '$ne') return { $not: [{ $in: [guarded, forms] }] };
  const typed = { $literal: forms.length > 1 ? text : forms[0] };
  return { [operator]: swapped ? [typed, guarded] : [guarded, typed] };
}

function guardMembership(item: unknown, list: readonly unknown[], shape: DocumentShape): unknown {
  const path = findPath(item);
  return {
    $in: [
      guardExpression(item, shape),
      list.flatMap((entry) => {
        const text = path === null ? null : constantText(entry);
        if (text === null) return [guardExpression(entry, shape)];
        return literalForms(text, path, shape).map((form) => (form === text ? { $literal: form } : form));
      }),
    ],
  };
}

/** The path that a reference such as `$a.b`, `$$ROOT.a` or `$$joined._id` reads; null for everything else. */
function findPath(value: unknown): string | null {
  if (typeof value !== 'string' || !value.startsWith('$')) return null;
  return value.replace(/^\$\$(ROOT|CURRENT)\./, '').replace(/^\${1,2}/, '');
}

function constantText(value: unknown): string | null {
  const inner = isJsonObject(value) && Object.keys(value).length === 1 && '$literal' in value ? value.$literal : value;
  return typeof inner === 'string' && (inner !== value || !inner.startsWith('$')) ? inner : null;
}

function guardReference(text: string, shape: DocumentShape): string {
  if (!text.startsWith('$')) return text;
  const variable = /^\$\$(\w*)/.exec(text)?.[1];
  if (variable !== undefined && /^[A-Z]/.test(variable) && !SYSTEM_VARIABLES.has(variable)) {
    throw badPipeline(`The variable $$${variable.slice(0, 40)} is not available`);
  }
  const parts = text.replace(/^\${1,2}/, '').split('.');
  if (parts.some((part) => part === '' || part.startsWith('$'))) {
    throw badPipeline(
      `${JSON.stringify(text.slice(0, 60))} is not a field path; write {"$literal": ...} for the text itself`,
    );
  }
  if (variable === undefined || variable === 'ROOT' || variable === 'CURRENT') shape.requireSeen(findPath(text)!);
  return text;
}
