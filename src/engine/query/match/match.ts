import type { BSONRegExp } from 'bson';
import { type Doc, isDocument } from '../../codec/document.js';
import { badValue } from '../../errors.js';
import type { Collation } from '../collation/collation.js';
import { NO_SCOPE, openScope } from '../operators/operator.js';
import { type Equality, FieldTest, readEqualities, equalitiesOfExpression } from './equalities.js';
import type { Alternative, Conjunct, Filter, MatchResult } from './filter.js';
import { compileExpression, type ExpressionContext, openExpressionContext } from '../expression.js';
import { compileSchema } from './json-schema.js';
import {
  equalityPredicate,
  type Predicate,
  type PredicateTools,
  QUERY_OPERATORS,
  UNSUPPORTED_QUERY_OPERATORS,
} from './match-operators.js';
import { conjunction, disjunction, leafNode, type Node, pathNode } from './match-nodes.js';
import { RangedFilter, readRanged } from './ranged-filter.js';
import { splitPath } from '../values/path.js';
import { isSlowPattern, regexPredicate } from './regex-predicate.js';
import { isTruthy, typeOf } from '../values/value.js';

export type { Alternative, Conjunct, Filter, MatchResult };

export interface FilterOptions {
  /** The enclosing pipeline's variables, for `$expr`, and the collation. */
  readonly environment?: ExpressionContext;
}

interface Parsing {
  /** Made only when something needs it: most filters have no expressions, and compiling has to be cheap. */
  environment: ExpressionContext | undefined;
  readonly collation: Collation | null;
  /** False inside an array's element, where `$expr` has no meaning. */
  readonly isWholeDocument: boolean;
  readonly fields: Set<string>;
  conjuncts: Conjunct[];
  alternatives: Alternative[][];
  unplanned: boolean;
  whole: boolean;
  usesScope: boolean;
  mayTakeLong: boolean;
  depth: number;
  tools: PredicateTools | undefined;
}

function openParsing(environment: ExpressionContext | undefined, isWholeDocument = true): Parsing {
  return {
    environment,
    collation: environment?.collation ?? null,
    isWholeDocument,
    fields: new Set(),
    conjuncts: [],
    alternatives: [],
    unplanned: false,
    whole: false,
    usesScope: false,
    mayTakeLong: false,
    depth: 0,
    tools: undefined,
  };
}

function descend<T>(parsing: Parsing, parse: () => T): T {
  if (++parsing.depth > MAX_DEPTH) throw badValue('the filter is nested too deeply');
  const result = parse();
  parsing.depth--;
  return result;
}

const LOGICAL = new Set(['$and', '$or', '$nor']);
const MAX_DEPTH = 150;

/** The top-level operators of a filter. */
const TOP_LEVEL_OPERATORS: readonly string[] = [
  '$and',
  '$or',
  '$nor',
  '$expr',
  '$jsonSchema',
  '$comment',
  '$alwaysTrue',
  '$alwaysFalse',
];

/** Every operator that a filter may use. */
export const supportedQueryOperators: readonly string[] = [
  ...TOP_LEVEL_OPERATORS,
  ...Object.keys(QUERY_OPERATORS),
].sort();

/** Compiles a filter document once; refuses what is malformed or unsupported with MongoDB's codes (mostly 2). */
export function compileFilter(filter: Doc, options: FilterOptions = {}): Filter {
  const collated = options.environment !== undefined && options.environment.collation !== null;
  const equalities = collated ? null : readEqualities(filter);
  if (equalities !== null && equalities.length > 0) return new EqualityFilter(equalities);
  const ranged = collated ? null : readRanged(filter);
  if (ranged !== null && ranged.ranges.length > 0) return new RangedFilter(ranged, () => compileWhole(filter, options));
  return compileWhole(filter, options);
}

function compileWhole(filter: Doc, options: FilterOptions): Filter {
  const parsing = openParsing(options.environment);
  const node = parseFilter(filter, parsing, true);
  const fields = parsing.whole ? null : parsing.fields;
  const plain = parsing.usesScope ? openScope(parsing.environment!) : NO_SCOPE;
  return {
    matches: (doc, scope = plain) => node.test(doc, scope),
    match(doc, scope = plain) {
      if (!node.test(doc, scope)) return null;
      const arrayIndex = node.locate(doc, scope);
      return arrayIndex < 0 ? {} : { arrayIndex };
    },
    fields,
    conjuncts: parsing.conjuncts,
    alternatives: parsing.alternatives,
    unplanned: parsing.unplanned,
    residual: parsing.unplanned || parsing.alternatives.length > 0,
    equalities: null,
    known: null,
    mayTakeLong: parsing.mayTakeLong,
    testBytes: () => undefined,
  };
}

const NO_ALTERNATIVES: readonly (readonly Alternative[])[] = [];

/** By far the most frequent filter: some top-level fields have plain values. Most of it is made only when asked for. */
class EqualityFilter implements Filter {
  readonly residual = false;
  readonly alternatives = NO_ALTERNATIVES;
  readonly unplanned = false;
  readonly mayTakeLong = false;
  private node: Node | undefined;
  private byteTest: FieldTest | null | undefined;

  constructor(readonly equalities: readonly Equality[]) {}

  get known(): readonly Equality[] {
    return this.equalities;
  }

  get fields(): ReadonlySet<string> {
    return new Set(this.equalities.map(({ path }) => path));
  }

  get conjuncts(): readonly Conjunct[] {
    return this.equalities.map(({ path, value }) => ({ path, op: 'eq', value }));
  }

  matches(doc: Doc): boolean {
    return this.open().test(doc, NO_SCOPE);
  }

  match(doc: Doc): MatchResult | null {
    const node = this.open();
    if (!node.test(doc, NO_SCOPE)) return null;
    const arrayIndex = node.locate(doc, NO_SCOPE);
    return arrayIndex < 0 ? {} : { arrayIndex };
  }

  testBytes(bytes: Buffer): boolean | undefined {
    if (this.byteTest === undefined) this.byteTest = FieldTest.of(this.equalities);
    return this.byteTest === null ? undefined : this.byteTest.test(bytes);
  }

  private open(): Node {
    return (this.node ??= conjunction(
      this.equalities.map(({ path, value }) => leafNode([path], equalityPredicate(value))),
    ));
  }
}

function parseFilter(filter: Doc, parsing: Parsing, top: boolean): Node {
  const nodes: Node[] = [];
  for (const name of Object.keys(filter)) {
    const value = filter[name];
    if (!name.startsWith('$')) {
      nodes.push(parseField(name, value, parsing, top));
    } else {
      const node = parseTopLevel(name, value, parsing, top);
      if (node !== null) nodes.push(node);
    }
  }
  return conjunction(nodes);
}

function parseTopLevel(name: string, value: unknown, parsing: Parsing, top: boolean): Node | null {
  if (LOGICAL.has(name)) return parseLogical(name, value, parsing, top);
  switch (name) {
    case '$comment':
      return null;
    case '$expr':
      return parseExpr(value, parsing, top);
    case '$jsonSchema': {
      if (!isDocument(value)) throw badValue('$jsonSchema must be an object');
      const test = compileSchema(value);
      parsing.unplanned = true;
      parsing.whole = true;
      parsing.mayTakeLong = true;
      return { test, locate: () => -1 };
    }
    case '$alwaysTrue':
    case '$alwaysFalse': {
      parsing.unplanned = true;
      const always = name === '$alwaysTrue';
      return { test: () => always, locate: () => -1 };
    }
    default:
      throw badValue(
        UNSUPPORTED_QUERY_OPERATORS.has(name)
          ? `${name} is not supported by this engine`
          : `unknown top level operator: ${name}. If you have a field name that starts with a '$' symbol, consider using $getField or $setField.`,
      );
  }
}

function parseLogical(name: string, value: unknown, parsing: Parsing, top: boolean): Node {
  if (!Array.isArray(value)) throw badValue(`${name} must be an array`);
  if (value.length === 0) throw badValue('$and/$or/$nor must be a nonempty array');
  const inTop = top && (name === '$and' || (name === '$or' && value.length === 1));
  const branches: Alternative[] | null = top && !inTop && name === '$or' ? [] : null;
  if (branches !== null) parsing.alternatives.push(branches);
  else if (!inTop) parsing.unplanned = true;
  const nodes = value.map((item: unknown) => {
    if (!isDocument(item)) throw badValue('$or/$and/$nor entries need to be full objects');
    if (branches !== null) return parseBranch(item, parsing, branches);
    return descend(parsing, () => parseFilter(item, parsing, inTop));
  });
  if (name === '$and') return conjunction(nodes);
  const any = disjunction(nodes);
  return name === '$or' ? any : { test: (doc, scope) => !any.test(doc, scope), locate: () => -1 };
}

/** Parses a branch of a `$or` and adds to `branches` what an index may use of it. */
function parseBranch(filter: Doc, parsing: Parsing, branches: Alternative[]): Node {
  const { conjuncts, alternatives, unplanned } = parsing;
  Object.assign(parsing, { conjuncts: [], alternatives: [], unplanned: false });
  const node = descend(parsing, () => parseFilter(filter, parsing, true));
  branches.push({
    conjuncts: parsing.conjuncts,
    alternatives: parsing.alternatives,
    unplanned: parsing.unplanned,
  });
  Object.assign(parsing, { conjuncts, alternatives, unplanned });
  return node;
}

function parseExpr(value: unknown, parsing: Parsing, top: boolean): Node {
  if (!parsing.isWholeDocument) throw badValue('$expr can only be applied to the top-level document');
  parsing.environment ??= openExpressionContext();
  const expression = compileExpression(value, parsing.environment);
  parsing.unplanned = true;
  parsing.usesScope = true;
  parsing.mayTakeLong = true;
  if (top && parsing.collation === null) {
    for (const { path, value: operand } of equalitiesOfExpression(value)) {
      parsing.conjuncts.push({ path, op: 'eq', value: operand });
    }
  }
  if (expression.fields === null) parsing.whole = true;
  else for (const field of expression.fields) parsing.fields.add(field);
  return {
    test(doc, scope) {
      scope.root = doc;
      return isTruthy(expression.evaluate(doc, scope));
    },
    locate: () => -1,
  };
}

/** True for a document whose first field is an operator; a DBRef's `$ref` is none. */
export function isOperatorDocument(value: unknown): value is Doc {
  if (!isDocument(value)) return false;
  const [first] = Object.keys(value);
  return first !== undefined && first.startsWith('$') && first !== '$ref' && first !== '$id' && first !== '$db';
}

function parseField(path: string, value: unknown, parsing: Parsing, top: boolean): Node {
  const parts = path.includes('.') ? splitPath(path) : [path];
  parsing.fields.add(parts[0]!);
  const predicate = parsePredicate(value, parsing);
  if (!top) {
    parsing.unplanned = true;
  } else if (predicate.conjuncts === undefined) {
    parsing.unplanned = true;
  } else {
    for (const { op, value: operand } of predicate.conjuncts) parsing.conjuncts.push({ path, op, value: operand });
    if (predicate.residual === true) parsing.unplanned = true;
  }
  return pathNode(parts, predicate);
}

/** Reads the condition on a path: a value (equality), a regular expression, or a document of operators. */
function parsePredicate(value: unknown, parsing: Parsing): Predicate {
  if (typeof value !== 'object' || value === null) return equalityPredicate(value, parsing.collation);
  if (typeOf(value) === 'regex') {
    const { pattern, options } = value as BSONRegExp;
    return patternOf(pattern, options, parsing);
  }
  return isOperatorDocument(value) ? parseOperators(value, parsing) : equalityPredicate(value, parsing.collation);
}

function parseOperators(spec: Doc, parsing: Parsing): Predicate {
  const parts: Predicate[] = [];
  parsing.tools ??= openTools(parsing);
  for (const name of Object.keys(spec)) {
    const operator = Object.hasOwn(QUERY_OPERATORS, name) ? QUERY_OPERATORS[name] : undefined;
    if (operator === undefined) {
      throw badValue(
        UNSUPPORTED_QUERY_OPERATORS.has(name) ? `${name} is not supported by this engine` : `unknown operator: ${name}`,
      );
    }
    const predicate = operator(spec[name], parsing.tools, spec);
    if (predicate?.isSlow === true) parsing.mayTakeLong = true;
    if (predicate !== null) parts.push(predicate);
  }
  if (parts.length === 1) return parts[0]!;
  return {
    kind: 'and',
    parts,
    conjuncts: parts.flatMap((part) => part.conjuncts ?? []),
    residual: parts.some((part) => part.conjuncts === undefined || part.residual === true),
  };
}

function patternOf(pattern: string, options: string, parsing: Parsing): Predicate {
  const predicate = regexPredicate(pattern, options);
  if (isSlowPattern(predicate)) parsing.mayTakeLong = true;
  return predicate;
}

function openTools(parsing: Parsing): PredicateTools {
  return {
    collation: parsing.collation,
    isOperatorDocument,
    parseOperators: (spec) => descend(parsing, () => parseOperators(spec, parsing)),
    regexPredicate: (pattern, options) => patternOf(pattern, options, parsing),
    compileDocumentFilter(filter) {
      // Fields inside an array's documents are not fields of the document itself.
      const inner = openParsing(parsing.environment, false);
      inner.depth = parsing.depth;
      const node = descend(inner, () => parseFilter(filter, inner, false));
      if (inner.mayTakeLong) parsing.mayTakeLong = true;
      return (doc) => node.test(doc, NO_SCOPE);
    },
  };
}

/** A test of single values for `$pull`, `$elemMatch` projections and the like: operators apply to the value itself. */
export function compileValueTest(spec: Doc, environment?: ExpressionContext): (value: unknown) => boolean {
  const node = pathNode(['v'], parseOperators(spec, openParsing(environment)));
  return (value) => node.test({ v: value }, NO_SCOPE);
}
