import type { BSONRegExp, ObjectId } from 'bson';
import { type Doc, isDocument } from '../../codec/document.js';
import { badValue, refusal } from '../../errors.js';
import { type Collation, holdsText } from '../collation/collation.js';
import type { Region } from '../geometry/cell.js';
import { isWithin, readIntersection, readRegion } from '../geometry/region.js';
import { compareValues, equalValues } from '../values/compare.js';
import {
  findTypeByNumber,
  integerOf,
  isTruthy,
  isTypeName,
  numberOf,
  rankOf,
  type TypeName,
  typeOf,
} from '../values/value.js';
import { keyOf } from '../values/value-key.js';
import { numberOperators } from './number-operators.js';

/** A condition on the values of one path, before it is bound to the path. */
export type Predicate = (
  | {
      readonly kind: 'leaf';
      single: (value: unknown) => boolean;
      /** True if the elements of an array at the end of the path are tried as well. */
      readonly leafArrays: boolean;
      /** The element of an array value that satisfied the condition, for positional operators. */
      position?(value: unknown): number;
    }
  | { readonly kind: 'and'; readonly parts: readonly Predicate[] }
  | { readonly kind: 'not'; readonly part: Predicate }
) & {
  /** The part that an index may use; absent = nothing. */
  readonly conjuncts?: readonly { op: ConjunctOp; value: unknown }[];
  /** True when the conjuncts say less than the predicate. */
  readonly residual?: boolean;
  /** True when the test of one value may take long. */
  readonly isSlow?: boolean;
};

/** A condition on one value at a time. */
export type LeafPredicate = Predicate & { readonly kind: 'leaf' };

/** `prefix`: a text that begins so, or the pattern itself as a value. `within`: a place in a region. */
export type ConjunctOp = 'eq' | 'in' | 'gt' | 'gte' | 'lt' | 'lte' | 'exists' | 'type' | 'prefix' | 'within';

/** The calling parser, as operators see it. */
export interface PredicateTools {
  /** How text is compared; null: by its code points. What an index may use of a predicate is folded by it. */
  readonly collation: Collation | null;
  isOperatorDocument(value: unknown): value is Doc;
  parseOperators(spec: Doc): Predicate;
  regexPredicate(pattern: string, options: string): Predicate;
  compileDocumentFilter(filter: Doc): (doc: Doc) => boolean;
}

/** Null means that a sibling operator takes care of it (`$options`). */
type PredicateOperator = (operand: unknown, tools: PredicateTools, siblings: Doc) => Predicate | null;

function leaf(single: (value: unknown) => boolean, leafArrays = true): LeafPredicate {
  return { kind: 'leaf', single, leafArrays };
}

function isNaNValue(value: unknown): boolean {
  const number = typeof value === 'number' ? value : rankOf(value) === 4 ? numberOf(value) : null;
  return number !== null && Number.isNaN(number);
}

function equality(operand: unknown): (value: unknown) => boolean {
  if (operand === null) return (value) => value === null || value === undefined;
  if (typeof operand === 'string' || typeof operand === 'boolean') {
    return (value) => value === operand || (typeof value === 'object' && value !== null && equalValues(value, operand));
  }
  if (typeof operand === 'number' && !Number.isNaN(operand)) {
    return (value) => value === operand || (typeof value !== 'number' && equalValues(value, operand));
  }
  if (typeof operand === 'object' && typeOf(operand) === 'objectId') return objectIdEquality(operand as ObjectId);
  return (value) => equalValues(value, operand);
}

/** The last bytes of an ObjectId differ most often. */
function objectIdEquality(operand: ObjectId): (value: unknown) => boolean {
  const wanted = operand.id;
  return (value) => {
    if (typeof value !== 'object' || value === null || typeOf(value) !== 'objectId') return false;
    const bytes = (value as ObjectId).id;
    for (let i = 11; i >= 0; i--) if (bytes[i] !== wanted[i]) return false;
    return true;
  };
}

/** A test of values against an operand that `test` compiles, text compared as the collation says. */
function comparison(
  test: (operand: unknown) => (value: unknown) => boolean,
  operand: unknown,
  collation: Collation | null,
): (value: unknown) => boolean {
  // Text is the only kind of value that a collation changes, and it is equal or near to nothing else.
  if (collation === null || !holdsText(operand)) return test(operand);
  const folded = test(collation.fold(operand));
  return (value) => folded(collation.fold(value));
}

function folded(operand: unknown, collation: Collation | null): unknown {
  return collation === null ? operand : collation.fold(operand);
}

/** The predicate of `$eq`, which a plain value in a filter stands for too. */
export function equalityPredicate(operand: unknown, collation: Collation | null = null): LeafPredicate {
  return {
    kind: 'leaf',
    single: comparison(equality, operand, collation),
    leafArrays: true,
    conjuncts: [{ op: 'eq', value: folded(operand, collation) }],
  };
}

const ORDERINGS = {
  gt: { accepts: (order: number) => order > 0, plain: (a: number, b: number) => a > b },
  gte: { accepts: (order: number) => order >= 0, plain: (a: number, b: number) => a >= b },
  lt: { accepts: (order: number) => order < 0, plain: (a: number, b: number) => a < b },
  lte: { accepts: (order: number) => order <= 0, plain: (a: number, b: number) => a <= b },
} as const;

/** Only values of the operand's type take part; NaN is below nothing and above nothing. */
function ordering(op: keyof typeof ORDERINGS): PredicateOperator {
  const { accepts, plain } = ORDERINGS[op];
  const inclusive = op === 'gte' || op === 'lte';
  const test = (operand: unknown): ((value: unknown) => boolean) => {
    if (operand === null) return (value) => inclusive && (value === null || value === undefined);
    const type = typeOf(operand);
    if (type === 'minKey' || type === 'maxKey') {
      return (value) => value !== undefined && accepts(compareValues(value, operand));
    }
    if (isNaNValue(operand)) return (value) => inclusive && isNaNValue(value);
    const rank = rankOf(operand);
    const general = (value: unknown) =>
      rankOf(value) === rank && !isNaNValue(value) && accepts(compareValues(value, operand));
    if (typeof operand !== 'number') return general;
    return (value) => (typeof value === 'number' ? plain(value, operand) : general(value));
  };
  return (operand, { collation }) => {
    if (typeOf(operand) === 'regex') throw badValue(`Can't have RegEx as arg to predicate over field with $${op}`);
    return { ...leaf(comparison(test, operand, collation)), conjuncts: [{ op, value: folded(operand, collation) }] };
  };
}

function membership(operand: unknown, tools: PredicateTools, name: string): Predicate {
  if (!Array.isArray(operand)) throw badValue(`${name} needs an array`);
  const { collation } = tools;
  const keys = new Set<unknown>();
  const patterns: Predicate[] = [];
  let hasNull = false;
  for (const item of operand) {
    if (tools.isOperatorDocument(item)) throw badValue(`cannot nest $ under ${name}`);
    if (item === null) {
      hasNull = true;
    } else if (typeOf(item) === 'regex') {
      patterns.push(tools.regexPredicate((item as BSONRegExp).pattern, (item as BSONRegExp).options));
    } else {
      keys.add(keyOf(folded(item, collation)));
    }
  }
  const single = (value: unknown): boolean => {
    if (value === null || value === undefined) return hasNull;
    if (keys.has(keyOf(folded(value, collation)))) return true;
    return patterns.some((pattern) => pattern.kind === 'leaf' && pattern.single(value));
  };
  return patterns.length > 0
    ? leaf(single)
    : { ...leaf(single), conjuncts: [{ op: 'in', value: folded(operand, collation) }] };
}

function typeSet(operand: unknown): Set<TypeName> {
  const items: unknown[] = Array.isArray(operand) ? operand : [operand];
  if (items.length === 0) throw badValue('$type must match at least one type');
  const names = new Set<TypeName>();
  for (const item of items) {
    if (item === 'number') {
      for (const name of ['int', 'long', 'double', 'decimal'] as const) names.add(name);
    } else if (typeof item === 'string') {
      // Deprecated types exist in BSON but never in this engine's documents.
      if (item === 'undefined') continue;
      if (!isTypeName(item)) throw badValue(`Unknown type name alias: ${item}`);
      names.add(item);
    } else {
      const number = integerOf(item);
      const found = findTypeByNumber(number);
      if (found !== null) names.add(found);
      else if (number !== 6) throw badValue(`Invalid numerical type code: ${String(number ?? typeOf(item))}`);
    }
  }
  return names;
}

function elementMatch(operand: unknown, tools: PredicateTools): Predicate {
  if (!isDocument(operand)) throw badValue('$elemMatch needs an Object');
  const test = elementTest(operand, tools);
  return {
    ...leaf((value) => Array.isArray(value) && value.some(test), false),
    position: (value) => (Array.isArray(value) ? value.findIndex(test) : -1),
  };
}

const DOCUMENT_OPERATORS = new Set(['$and', '$or', '$nor', '$expr', '$jsonSchema', '$comment', '$where']);

function elementTest(operand: Doc, tools: PredicateTools): (item: unknown) => boolean {
  const [first] = Object.keys(operand);
  if (tools.isOperatorDocument(operand) && !DOCUMENT_OPERATORS.has(first!)) {
    const predicate = tools.parseOperators(operand);
    return (item) => singleTest(predicate, item);
  }
  const test = tools.compileDocumentFilter(operand);
  return (item) => {
    if (isDocument(item)) return test(item);
    return Array.isArray(item) && test(Object.fromEntries(item.entries()));
  };
}

/** True if one value satisfies a predicate without looking into arrays. */
function singleTest(predicate: Predicate, value: unknown): boolean {
  switch (predicate.kind) {
    case 'leaf':
      return predicate.single(value);
    case 'and':
      return predicate.parts.every((part) => singleTest(part, value));
    case 'not':
      return !singleTest(predicate.part, value);
  }
}

/** The operators on a path, by name. */
export const QUERY_OPERATORS: Readonly<Record<string, PredicateOperator>> = {
  $eq: (operand, { collation }) => equalityPredicate(operand, collation),
  $ne(operand, { collation }) {
    if (typeOf(operand) === 'regex') throw badValue("Can't have regex as arg to $ne.");
    return { kind: 'not', part: leaf(comparison(equality, operand, collation)) };
  },
  $gt: ordering('gt'),
  $gte: ordering('gte'),
  $lt: ordering('lt'),
  $lte: ordering('lte'),
  $in: (operand, tools) => membership(operand, tools, '$in'),
  $nin: (operand, tools) => ({ kind: 'not', part: { ...membership(operand, tools, '$nin') } }),
  $exists(operand) {
    const wanted = isTruthy(operand);
    const exists = leaf((value) => value !== undefined, false);
    const conjuncts = [{ op: 'exists' as const, value: wanted }];
    return wanted ? { ...exists, conjuncts } : { kind: 'not', part: exists, conjuncts };
  },
  $type(operand) {
    const names = typeSet(operand);
    return { ...leaf((value) => names.has(typeOf(value))), conjuncts: [{ op: 'type', value: operand }] };
  },
  $not(operand, tools) {
    if (typeOf(operand) === 'regex') {
      const { pattern, options } = operand as BSONRegExp;
      return { kind: 'not', part: tools.regexPredicate(pattern, options) };
    }
    if (!isDocument(operand)) throw badValue('$not needs a regex or a document');
    if (Object.keys(operand).length === 0) throw badValue('$not cannot be empty');
    return { kind: 'not', part: tools.parseOperators(operand) };
  },
  $regex(operand, tools, siblings) {
    const options = siblings['$options'];
    if (options !== undefined && typeof options !== 'string') throw badValue('$options has to be a string');
    if (typeof operand === 'string') return tools.regexPredicate(operand, options ?? '');
    if (typeOf(operand) !== 'regex') throw badValue('$regex has to be a string');
    const regex = operand as BSONRegExp;
    if (options !== undefined && regex.options !== '') throw badValue('options set in both $regex and $options');
    return tools.regexPredicate(regex.pattern, options ?? regex.options);
  },
  $options(_operand, _tools, siblings) {
    if (!Object.hasOwn(siblings, '$regex')) throw badValue('$options needs a $regex');
    return null;
  },
  ...numberOperators,
  $size(operand) {
    const size = integerOf(operand);
    if (size === null) throw badValue('Failed to parse $size. Expected an integer');
    if (size < 0) throw badValue('Failed to parse $size. Expected a non-negative number');
    return leaf((value) => Array.isArray(value) && value.length === size, false);
  },
  $all(operand, tools) {
    if (!Array.isArray(operand)) throw badValue('$all needs an array');
    if (operand.length === 0) return leaf(() => false);
    const nested = tools.isOperatorDocument(operand[0]) && Object.keys(operand[0])[0] === '$elemMatch';
    const parts = operand.map((item: unknown): Predicate => {
      const isElementMatch = tools.isOperatorDocument(item) && Object.keys(item)[0] === '$elemMatch';
      if (nested !== isElementMatch && (nested || tools.isOperatorDocument(item))) {
        throw badValue(nested ? '$all/$elemMatch has to be consistent' : 'no $ expressions in $all');
      }
      if (isElementMatch) return elementMatch(item['$elemMatch'], tools);
      if (typeOf(item) === 'regex') {
        return tools.regexPredicate((item as BSONRegExp).pattern, (item as BSONRegExp).options);
      }
      return equalityPredicate(item, tools.collation);
    });
    return {
      kind: 'and',
      parts,
      // One of several equalities is enough for an index; they meet only in arrays.
      conjuncts: parts.find((part) => part.conjuncts !== undefined)?.conjuncts ?? [],
      residual: true,
    };
  },
  $elemMatch: elementMatch,
  $geoWithin: (operand) => inRegion(readRegion(operand)),
  $within: (operand) => inRegion(readRegion(operand)),
  $geoIntersects: (operand) => inRegion(readIntersection(operand)),
  $near: nearElsewhere,
  $nearSphere: nearElsewhere,
};

function inRegion(region: Region): Predicate {
  const conjuncts = [{ op: 'within' as const, value: region }];
  return { ...leaf((value) => isWithin(value, region), false), conjuncts, residual: true, isSlow: region.isSlow };
}

/** A find takes them out of its filter: everywhere else there is no order that they could give. */
function nearElsewhere(): never {
  throw refusal(5626500, '$geoNear, $near, and $nearSphere are not allowed in this context');
}

/** Operators of MongoDB that this engine names in its refusal. */
export const UNSUPPORTED_QUERY_OPERATORS: ReadonlySet<string> = new Set(['$where', '$text', '$sampleRate']);
