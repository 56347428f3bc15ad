import { type Doc, isDocument, setField } from '../codec/document.js';
import { CODES, refusal, unsupported } from '../errors.js';
import type { Collation } from './collation/collation.js';
import { accumulatorExpressions } from './operators/accumulator-expressions.js';
import { arithmeticOperators } from './operators/arithmetic.js';
import { arrayOperators } from './operators/array.js';
import { conditionOperators } from './operators/condition.js';
import { dateOperators } from './operators/date.js';
import { objectOperators } from './operators/object.js';
import {
  type Compiled,
  type Compiler,
  constant,
  type Evaluate,
  fold,
  type OperatorTable,
} from './operators/operator.js';
import { setOperators } from './operators/set.js';
import { stringOperators } from './operators/string.js';
import { typeOperators } from './operators/convert.js';
import { type Path, readPath, splitPath } from './values/path.js';
import { fieldOf } from './values/value.js';
import { weigh } from './values/weight.js';

const OPERATORS: OperatorTable = {
  ...arithmeticOperators,
  ...conditionOperators,
  ...stringOperators,
  ...arrayOperators,
  ...setOperators,
  ...objectOperators,
  ...typeOperators,
  ...dateOperators,
  ...accumulatorExpressions,
};

const CORE_OPERATORS = ['$literal', '$const', '$let'];

/** Operators that compare values, text among them: with a collation they would have to follow it. */
const COMPARING: ReadonlySet<string> = new Set([
  ...['$cmp', '$eq', '$ne', '$gt', '$gte', '$lt', '$lte', '$in', '$indexOfArray', '$sortArray'],
  ...['$max', '$maxN', '$min', '$minN'],
  ...['$setDifference', '$setEquals', '$setIntersection', '$setIsSubset', '$setUnion'],
]);

/** Every operator of the expression language. */
export const supportedExpressions: readonly string[] = [...CORE_OPERATORS, ...Object.keys(OPERATORS)].sort();

/** The variables that an expression may use, the instant of `$$NOW` (null = the start of each run), the collation. */
export interface ExpressionContext {
  readonly variables: ReadonlyMap<string, number>;
  /** Shared by everything compiled for the same run, so that no two variables have the same slot. */
  readonly slots: { count: number };
  readonly now: Date | null;
  /** Variables with fixed values (`$$KEEP` and its like in `$redact`). */
  readonly constants: ReadonlyMap<string, unknown>;
  /** How filters and sorts compare text; null: by its code points. Expressions that compare are refused with one. */
  readonly collation: Collation | null;
}

/** Slots 0, 1, ... belong to the named variables, in order. */
export function openExpressionContext(names: readonly string[] = [], now: Date | null = null): ExpressionContext {
  return {
    variables: new Map(names.map((name, slot) => [name, slot])),
    slots: { count: names.length },
    now,
    constants: new Map(),
    collation: null,
  };
}

/** A compiled expression. */
export interface Expression {
  evaluate: Evaluate;
  readonly constant: boolean;
  /** Top-level fields of the document that it reads; null = possibly all. */
  readonly fields: ReadonlySet<string> | null;
}

/** The reads of an expression, collected while it is compiled. */
interface Reads {
  readonly fields: Set<string>;
  whole: boolean;
}

/** Compiles an aggregation expression; refuses unknown operators (168), undefined variables (17276) and bad paths. */
export function compileExpression(expression: unknown, environment: ExpressionContext): Expression {
  const reads: Reads = { fields: new Set(), whole: false };
  const compiled = createCompiler(environment, reads, 0).compile(expression);
  return { ...compiled, fields: reads.whole ? null : reads.fields };
}

/** Hands out a compiler and says what everything compiled with it reads. */
export function compileWith<T>(
  environment: ExpressionContext,
  compile: (compiler: Compiler) => T,
): { result: T; fields: ReadonlySet<string> | null } {
  const reads: Reads = { fields: new Set(), whole: false };
  const result = compile(createCompiler(environment, reads, 0));
  return { result, fields: reads.whole ? null : reads.fields };
}

const MAX_DEPTH = 200;

function createCompiler(environment: ExpressionContext, reads: Reads, depth: number): Compiler {
  const compiler: Compiler = {
    compile: (expression) => compileNode(expression, environment, reads, depth + 1),
    bind(names) {
      const variables = new Map(environment.variables);
      const slots = names.map((name) => {
        checkVariableName(name);
        const slot = environment.slots.count++;
        variables.set(name, slot);
        return slot;
      });
      return { compiler: createCompiler({ ...environment, variables }, reads, depth), slots };
    },
  };
  return compiler;
}

function checkVariableName(name: string): void {
  if (name === 'CURRENT' || /^[a-z\u0080-\uffff][A-Za-z0-9_\u0080-\uffff]*$/.test(name)) return;
  throw refusal(name === '' ? 16866 : 16867, `'${name}' starts with an invalid character for a user variable name`);
}

function compileNode(expression: unknown, environment: ExpressionContext, reads: Reads, depth: number): Compiled {
  if (depth > MAX_DEPTH) throw refusal(15999, 'the expression is nested too deeply');
  if (typeof expression === 'string') {
    if (expression.startsWith('$$')) return compileVariable(expression.slice(2), environment, reads);
    if (expression.startsWith('$')) return compileFieldPath(expression.slice(1), environment, reads);
    return constant(expression);
  }
  if (Array.isArray(expression)) return compileArray(expression, environment, reads, depth);
  if (isDocument(expression)) return compileDocument(expression, environment, reads, depth);
  return constant(expression);
}

/** The parts of a field path; refuses empty parts and those that start with `$`. */
export function parseFieldPath(text: string): Path {
  if (text === '') throw refusal(16872, "'$' by itself is not a valid FieldPath");
  const parts = splitPath(text);
  for (const part of parts) {
    if (part === '') throw refusal(15998, 'FieldPath field names may not be empty strings.');
    if (part.startsWith('$')) {
      throw refusal(16410, `FieldPath field names may not start with '$'. Consider using $getField or $setField.`);
    }
    if (part.includes('\0')) throw refusal(16411, 'FieldPath field names may not contain null characters');
  }
  return parts;
}

function compileFieldPath(text: string, environment: ExpressionContext, reads: Reads): Compiled {
  const path = parseFieldPath(text);
  const current = environment.variables.get('CURRENT');
  if (current !== undefined) {
    return { evaluate: (_doc, scope) => readPath(scope.vars[current], path), constant: false };
  }
  const name = path[0]!;
  reads.fields.add(name);
  if (path.length === 1) {
    return { evaluate: (doc) => (isDocument(doc) ? fieldOf(doc, name) : readPath(doc, path)), constant: false };
  }
  return { evaluate: (doc) => readPath(doc, path), constant: false };
}

function compileVariable(text: string, environment: ExpressionContext, reads: Reads): Compiled {
  const [name, ...rest] = splitPath(text) as [string, ...string[]];
  const path = rest.length > 0 ? parseFieldPath(rest.join('.')) : rest;
  const slot = environment.variables.get(name);
  if (slot !== undefined) {
    if (path.length === 0) return { evaluate: (_doc, scope) => scope.vars[slot], constant: false };
    return { evaluate: (_doc, scope) => readPath(scope.vars[slot], path), constant: false };
  }
  if (environment.constants.has(name)) return constant(environment.constants.get(name));
  switch (name) {
    case 'ROOT':
    case 'CURRENT': {
      if (path.length > 0) reads.fields.add(path[0]!);
      else reads.whole = true;
      if (name === 'CURRENT') return { evaluate: (doc) => readPath(doc, path), constant: false };
      return { evaluate: (_doc, scope) => readPath(scope.root, path), constant: false };
    }
    case 'NOW':
      return { evaluate: (_doc, scope) => readPath(scope.now, path), constant: false };
    case 'REMOVE':
      return constant(undefined);
    default:
      throw refusal(17276, `Use of undefined variable: ${name}`);
  }
}

function compileArray(
  items: readonly unknown[],
  environment: ExpressionContext,
  reads: Reads,
  depth: number,
): Compiled {
  const parts = items.map((item) => compileNode(item, environment, reads, depth + 1));
  const evaluates = parts.map((part) => part.evaluate);
  return fold((doc, scope) => {
    const result = evaluates.map((evaluate) => evaluate(doc, scope) ?? null);
    weigh(result);
    return result;
  }, parts);
}

function compileDocument(expression: Doc, environment: ExpressionContext, reads: Reads, depth: number): Compiled {
  const names = Object.keys(expression);
  const operator = names.find((name) => name.startsWith('$'));
  if (operator !== undefined) {
    if (names.length > 1) {
      throw refusal(15983, `an object representing an expression must have exactly one field: ${names.join(', ')}`);
    }
    return compileOperator(operator, expression[operator], environment, reads, depth);
  }
  const parts = names.map((name) => {
    if (name.includes('.')) throw refusal(16412, `FieldPath field names may not contain '.': ${name}`);
    if (name === '') throw refusal(15998, 'FieldPath field names may not be empty strings.');
    return compileNode(expression[name], environment, reads, depth + 1);
  });
  return fold((doc, scope) => {
    const result: Doc = {};
    for (let i = 0; i < parts.length; i++) {
      const value = parts[i]!.evaluate(doc, scope);
      if (value !== undefined) setField(result, names[i]!, value);
    }
    weigh(result);
    return result;
  }, parts);
}

function compileOperator(
  name: string,
  operand: unknown,
  environment: ExpressionContext,
  reads: Reads,
  depth: number,
): Compiled {
  if (name === '$literal' || name === '$const') return constant(operand);
  const compiler = createCompiler(environment, reads, depth);
  if (name === '$let') return compileLet(operand, compiler);
  if (!Object.hasOwn(OPERATORS, name)) {
    throw refusal(CODES.InvalidPipelineOperator, `Unrecognized expression '${name}'`);
  }
  if (environment.collation !== null && COMPARING.has(name)) {
    throw unsupported(`${name} in an expression is not available together with a collation in this engine`);
  }
  return OPERATORS[name]!(operand, compiler, name);
}

function compileLet(operand: unknown, compiler: Compiler): Compiled {
  if (!isDocument(operand)) throw refusal(16874, '$let only supports an object as its argument');
  for (const key of Object.keys(operand)) {
    if (key !== 'vars' && key !== 'in') throw refusal(16875, `Unrecognized parameter to $let: ${key}`);
  }
  const vars = operand['vars'];
  if (vars === undefined) throw refusal(16876, "Missing 'vars' parameter to $let");
  if (!Object.hasOwn(operand, 'in')) throw refusal(16877, "Missing 'in' parameter to $let");
  if (!isDocument(vars)) throw refusal(10065, "invalid parameter: expected an object ('vars')");
  const names = Object.keys(vars);
  const values = names.map((name) => compiler.compile(vars[name]));
  const { compiler: inner, slots } = compiler.bind(names);
  const body = inner.compile(operand['in']);
  return {
    evaluate(doc, scope) {
      const computed = values.map((value) => value.evaluate(doc, scope));
      slots.forEach((slot, i) => (scope.vars[slot] = computed[i]));
      return body.evaluate(doc, scope);
    },
    constant: body.constant,
  };
}
