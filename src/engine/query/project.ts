import { type Doc, isDocument, setField } from '../codec/document.js';
import { badValue, refusal, unsupported } from '../errors.js';
import { compileExpression, type ExpressionContext, type Expression, openExpressionContext } from './expression.js';
import { compileFilter, compileValueTest, isOperatorDocument, type MatchResult } from './match/match.js';
import { QUERY_OPERATORS } from './match/match-operators.js';
import { countRounds, openScope, type Scope } from './operators/operator.js';
import { splitPath } from './values/path.js';
import { copyDoc, fieldOf, integerOf, isTruthy, typeOf } from './values/value.js';

/** A compiled projection. */
export interface Projection {
  /** `match` is needed only for the positional `$`. The document itself is left alone; unchanged parts are shared. */
  apply: (doc: Doc, match?: MatchResult | null, scope?: Scope) => Doc;
  /** Top-level fields of the document that it needs; null = possibly all. */
  readonly fields: ReadonlySet<string> | null;
  /** True if there is anything in its documents that is not in the given ones. */
  readonly computes: boolean;
}

export interface ProjectionOptions {
  readonly environment?: ExpressionContext;
  /** Inside an aggregation, where `$slice`, `$elemMatch` and the positional `$` of `find` do not exist. */
  readonly aggregation?: boolean;
}

type Leaf =
  | { readonly kind: 'include' }
  | { readonly kind: 'exclude' }
  | { readonly kind: 'compute'; readonly expression: Expression }
  | { readonly kind: 'slice'; readonly cut: (array: readonly unknown[]) => unknown[] }
  | { readonly kind: 'elemMatch'; readonly test: (item: unknown) => boolean };

interface Tree {
  readonly leaves: Map<string, Leaf>;
  readonly children: Map<string, Tree>;
  /** Names of computed leaves and of children that hold some, in the order of the specification. */
  readonly computed: Set<string>;
}

interface Parsing {
  readonly environment: ExpressionContext;
  readonly aggregation: boolean;
  readonly root: Tree;
  mode: 'include' | 'exclude' | null;
  idMode: 'include' | 'exclude' | 'compute' | null;
  positional: readonly string[] | null;
  hasSlice: boolean;
}

const EMPTY_PROJECT = 'Invalid $project :: caused by :: projection specification must have at least one field';

function openTree(): Tree {
  return { leaves: new Map(), children: new Map(), computed: new Set() };
}

/** Compiles the projection of a find or a `$project` stage; mixtures and colliding paths are refused. */
export function compileProjection(spec: Doc, options: ProjectionOptions = {}): Projection {
  const environment = options.environment ?? openExpressionContext();
  const parsing: Parsing = {
    environment,
    aggregation: options.aggregation === true,
    root: openTree(),
    mode: null,
    idMode: null,
    positional: null,
    hasSlice: false,
  };
  const names = Object.keys(spec);
  if (names.length === 0) {
    if (parsing.aggregation) throw refusal(51272, EMPTY_PROJECT);
    return { apply: (doc) => doc, fields: null, computes: false };
  }
  for (const name of names) parseEntry(name, spec[name], parsing);
  // With nothing else said, `_id` alone decides; a lone $slice keeps everything.
  const mode = parsing.mode ?? (parsing.hasSlice || parsing.idMode === 'exclude' ? 'exclude' : 'include');
  if (mode === 'include' && parsing.idMode !== 'compute') {
    if (parsing.idMode === 'exclude') parsing.root.leaves.delete('_id');
    else if (!parsing.root.children.has('_id')) parsing.root.leaves.set('_id', { kind: 'include' });
  }
  return finish(parsing, mode, environment);
}

function finish(parsing: Parsing, mode: 'include' | 'exclude', environment: ExpressionContext): Projection {
  const { root, positional } = parsing;
  const plain = openScope(environment);
  const project = mode === 'include' ? includeFrom : excludeFrom;
  const fields = mode === 'include' ? includedFields(root) : null;
  if (root.computed.size === 0 && positional === null) {
    return { apply: (doc) => project(root, doc), fields, computes: false };
  }
  return {
    apply(doc, match, scope = plain) {
      scope.root = doc;
      const source = positional === null ? doc : cutToMatch(doc, positional, match);
      const result = project(root, source);
      addComputed(root, result, source, scope);
      return result;
    },
    fields,
    computes: true,
  };
}

function parseEntry(name: string, value: unknown, parsing: Parsing): void {
  let path = name;
  if (!parsing.aggregation && path.endsWith('.$')) {
    path = path.slice(0, -2);
    if (parsing.positional !== null) throw refusal(31276, POSITIONAL_TWICE);
    if (!isTruthy(value) || isDocument(value)) {
      throw refusal(31395, 'positional projection cannot be used with exclusion');
    }
    parsing.positional = splitPath(path);
  }
  parseValue(checkPath(path), value, parsing);
}

const POSITIONAL_TWICE = 'Cannot specify more than one positional projection per query.';
const POSITIONAL_WITHIN = "As of 4.4, it's illegal to specify positional operator in the middle of a path.";
const DOLLAR_NAME = `FieldPath field names may not start with '$'. Consider using $getField or $setField.`;

function checkPath(path: string): readonly string[] {
  const parts = splitPath(path);
  for (const part of parts) {
    if (part === '') throw refusal(40352, 'FieldPath cannot be constructed with empty string');
    if (part === '$') throw refusal(31394, POSITIONAL_WITHIN);
    if (part.startsWith('$')) throw refusal(16410, DOLLAR_NAME);
  }
  return parts;
}

function parseValue(path: readonly string[], value: unknown, parsing: Parsing): void {
  if (isDocument(value)) {
    if (!isOperatorDocument(value)) {
      const names = Object.keys(value);
      if (names.length === 0) throw refusal(51270, 'An empty sub-projection is not a valid value');
      for (const name of names) parseValue([...path, ...checkPath(name)], value[name], parsing);
      return;
    }
    const leaf = parsing.aggregation ? null : findLeaf(value, path, parsing);
    if (leaf !== null) {
      if (leaf.kind === 'slice') parsing.hasSlice = true;
      else claimMode('include', path, parsing);
      place(parsing.root, path, leaf);
      return;
    }
    computeLeaf(path, value, parsing);
    return;
  }
  const type = typeOf(value);
  if (type === 'bool' || type === 'int' || type === 'long' || type === 'double' || type === 'decimal') {
    const kind = isTruthy(value) ? 'include' : 'exclude';
    claimMode(kind, path, parsing);
    if (path.length > 1 || path[0] !== '_id' || kind === 'exclude') place(parsing.root, path, { kind });
    return;
  }
  computeLeaf(path, value, parsing);
}

function claimMode(kind: 'include' | 'exclude', path: readonly string[], parsing: Parsing): void {
  if (path.length === 1 && path[0] === '_id') {
    parsing.idMode = kind;
    return;
  }
  parsing.mode ??= kind;
  if (parsing.mode !== kind) {
    const text = path.join('.');
    throw kind === 'exclude'
      ? refusal(31254, `Cannot do exclusion on field ${text} in inclusion projection`)
      : refusal(31253, `Cannot do inclusion on field ${text} in exclusion projection`);
  }
}

function computeLeaf(path: readonly string[], value: unknown, parsing: Parsing): void {
  if (parsing.mode === 'exclude') {
    throw refusal(31252, `Cannot use an expression on field ${path.join('.')} in an exclusion projection`);
  }
  if (path.length === 1 && path[0] === '_id') parsing.idMode = 'compute';
  parsing.mode = 'include';
  place(parsing.root, path, { kind: 'compute', expression: compileExpression(value, parsing.environment) });
}

/** The projection operators of find; null when the document is an expression. */
function findLeaf(spec: Doc, path: readonly string[], parsing: Parsing): Leaf | null {
  const [name] = Object.keys(spec) as [string];
  if (name === '$elemMatch') {
    if (path.length > 1) throw refusal(31275, 'Cannot use $elemMatch projection on a nested field');
    if (!isDocument(spec[name])) throw badValue('$elemMatch: Invalid argument, object required');
    return { kind: 'elemMatch', test: compileElementTest(spec[name], parsing.environment) };
  }
  if (name === '$slice') return sliceLeaf(spec[name]);
  if (name === '$meta') throw unsupported('$meta projections are not supported by this engine');
  return null;
}

/** The condition of `$elemMatch` on one array element, as in a filter: on the element, or on its fields. */
function compileElementTest(spec: Doc, environment: ExpressionContext): (item: unknown) => boolean {
  const [first] = Object.keys(spec);
  if (isOperatorDocument(spec) && Object.hasOwn(QUERY_OPERATORS, first!)) {
    const test = compileValueTest({ $elemMatch: spec }, environment);
    return (item) => test([item]);
  }
  const filter = compileFilter(spec, { environment });
  return (item) => {
    if (isDocument(item)) return filter.matches(item);
    return Array.isArray(item) && filter.matches(Object.fromEntries(item.entries()));
  };
}

function sliceLeaf(operand: unknown): Leaf | null {
  if (!Array.isArray(operand)) {
    const count = integerOf(operand);
    if (count === null) throw refusal(28667, '$slice needs a number or an array');
    return { kind: 'slice', cut: (array) => (count < 0 ? array.slice(count) : array.slice(0, count)) };
  }
  const skip = integerOf(operand[0]);
  if (skip === null) return null;
  const limit = integerOf(operand[1]);
  if (operand.length !== 2 || limit === null) throw refusal(28667, '$slice needs an array of skip and limit');
  if (limit <= 0) throw refusal(28724, '$slice limit must be positive');
  return {
    kind: 'slice',
    cut(array) {
      const from = skip < 0 ? Math.max(0, array.length + skip) : skip;
      return array.slice(from, from + limit);
    },
  };
}

function place(root: Tree, path: readonly string[], leaf: Leaf): void {
  let tree = root;
  const isComputed = leaf.kind === 'compute' || leaf.kind === 'elemMatch';
  path.forEach((name, i) => {
    const last = i === path.length - 1;
    if (tree.leaves.has(name) || (last && tree.children.has(name))) {
      throw refusal(last ? 31250 : 31249, `Path collision at ${path.join('.')}`);
    }
    if (isComputed) tree.computed.add(name);
    if (last) {
      tree.leaves.set(name, leaf);
      return;
    }
    let child = tree.children.get(name);
    if (child === undefined) {
      child = openTree();
      tree.children.set(name, child);
    }
    tree = child;
  });
}

function includedFields(root: Tree): ReadonlySet<string> | null {
  const fields = new Set<string>();
  const collect = (tree: Tree, top: boolean): boolean => {
    for (const [name, leaf] of tree.leaves) {
      if (leaf.kind === 'compute') {
        if (leaf.expression.fields === null) return false;
        for (const field of leaf.expression.fields) fields.add(field);
      } else if (top) {
        fields.add(name);
      }
    }
    for (const [name, child] of tree.children) {
      if (top) fields.add(name);
      if (!collect(child, false)) return false;
    }
    return true;
  };
  return collect(root, true) ? fields : null;
}

function includeFrom(tree: Tree, doc: Doc): Doc {
  const result: Doc = {};
  for (const name of Object.keys(doc)) {
    const leaf = tree.leaves.get(name);
    if (leaf !== undefined) {
      if (leaf.kind === 'include') setField(result, name, doc[name]);
      else if (leaf.kind === 'slice') setField(result, name, slice(leaf.cut, doc[name]));
      continue;
    }
    const child = tree.children.get(name);
    if (child === undefined) continue;
    const value = includeWithin(child, doc[name]);
    if (value !== undefined) setField(result, name, value);
  }
  return result;
}

function includeWithin(tree: Tree, value: unknown): unknown {
  if (isDocument(value)) return includeFrom(tree, value);
  if (!Array.isArray(value)) return undefined;
  const kept: unknown[] = [];
  for (const item of value) {
    const inner = includeWithin(tree, item);
    if (inner !== undefined) kept.push(inner);
  }
  return kept;
}

function excludeFrom(tree: Tree, doc: Doc): Doc {
  const result: Doc = {};
  for (const name of Object.keys(doc)) {
    const leaf = tree.leaves.get(name);
    if (leaf?.kind === 'exclude') continue;
    let value = doc[name];
    if (leaf?.kind === 'slice') {
      value = slice(leaf.cut, value);
    } else {
      const child = tree.children.get(name);
      if (child !== undefined) value = excludeWithin(child, value);
    }
    setField(result, name, value);
  }
  return result;
}

function excludeWithin(tree: Tree, value: unknown): unknown {
  if (isDocument(value)) return excludeFrom(tree, value);
  return Array.isArray(value) ? value.map((item) => excludeWithin(tree, item)) : value;
}

function slice(cut: (array: readonly unknown[]) => unknown[], value: unknown): unknown {
  return Array.isArray(value) ? cut(value) : value;
}

function addComputed(tree: Tree, target: Doc, source: unknown, scope: Scope): void {
  for (const name of tree.computed) {
    const leaf = tree.leaves.get(name);
    if (leaf?.kind === 'compute') {
      const value = leaf.expression.evaluate(scope.root, scope);
      if (value === undefined) delete target[name];
      else setField(target, name, value);
    } else if (leaf?.kind === 'elemMatch') {
      const array = fieldOf(source as Doc, name);
      const found = Array.isArray(array) ? array.findIndex(leaf.test) : -1;
      if (found >= 0) setField(target, name, [(array as unknown[])[found]]);
    } else {
      setField(target, name, computedWithin(tree.children.get(name)!, fieldOf(target, name), scope));
    }
  }
}

/** Arrays get the computed fields in each element; whatever is no document becomes one. */
function computedWithin(tree: Tree, value: unknown, scope: Scope): unknown {
  if (Array.isArray(value)) return value.map((item) => computedWithin(tree, item, scope));
  countRounds(scope);
  const target = isDocument(value) ? copyDoc(value) : {};
  addComputed(tree, target, value, scope);
  return target;
}

/** Reduces the first array on the path to the element that the filter matched. */
function cutToMatch(doc: Doc, path: readonly string[], match: MatchResult | null | undefined): Doc {
  const copy = copyDoc(doc);
  let target = copy;
  for (const name of path) {
    const value = fieldOf(target, name);
    if (Array.isArray(value)) {
      const index = match?.arrayIndex;
      if (index === undefined || index >= value.length) {
        throw refusal(51246, "positional operator '.$' couldn't find a matching element in the array");
      }
      setField(target, name, [value[index]]);
      break;
    }
    if (!isDocument(value)) break;
    const inner = copyDoc(value);
    setField(target, name, inner);
    target = inner;
  }
  return copy;
}

/** Compiles `$addFields`: every value is an expression, nested documents go into existing ones. */
export function compileAddFields(spec: Doc, environment: ExpressionContext): Projection {
  const root = openTree();
  const add = (path: readonly string[], value: unknown): void => {
    if (isDocument(value) && !isOperatorDocument(value) && Object.keys(value).length > 0) {
      for (const name of Object.keys(value)) add([...path, ...checkPath(name)], value[name]);
    } else {
      place(root, path, { kind: 'compute', expression: compileExpression(value, environment) });
    }
  };
  const names = Object.keys(spec);
  if (names.length === 0) {
    throw refusal(40177, 'Invalid $addFields :: caused by :: specification must have at least one field');
  }
  for (const name of names) add(checkPath(name), spec[name]);
  const plain = openScope(environment);
  return {
    apply(doc, _match, scope = plain) {
      scope.root = doc;
      const result = copyDoc(doc);
      addComputed(root, result, doc, scope);
      return result;
    },
    fields: includedFields(root),
    computes: true,
  };
}
