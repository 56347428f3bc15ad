import { Timestamp } from '../../codec/bson.js';
import { type Doc, isDocument } from '../../codec/document.js';
import { badValue, failedToParse, refusal, typeMismatch } from '../../errors.js';
import { closeDecimal, decimalOf } from '../values/decimal.js';
import { compileFilter, compileValueTest, isOperatorDocument } from '../match/match.js';
import { addNumbers, kindOf, multiplyNumbers, narrow } from '../values/number.js';
import { compileSort } from '../sort.js';
import { ABSENT, type Change } from './update-path.js';
import { compareValues, identicalValues } from '../values/compare.js';
import { integerOf, isNumber, toDouble, typeOf } from '../values/value.js';
import { keyOf } from '../values/value-key.js';

/** Circumstances that a change may depend on besides the current value. */
export interface UpdateContext {
  /** The array position that the filter matched, for `$`. */
  readonly arrayIndex?: number | undefined;
  /** True while the document of an upsert is made. */
  readonly inserting: boolean;
  readonly now: Date;
}

export interface UpdateOperator {
  /** True if missing parents are created. */
  readonly creates: boolean;
  /** Applied only to the document of an upsert. */
  readonly onInsertOnly?: boolean;
  /** Checks the operand once; `path` serves the messages. */
  compile(operand: unknown, path: string): (current: unknown, context: UpdateContext) => ReturnType<Change>;
}

function replaceBy(current: unknown, value: unknown): unknown {
  return identicalValues(current, value) ? current : value;
}

function arrayAt(current: unknown, name: string, path: string, code = 2): readonly unknown[] {
  if (Array.isArray(current)) return current;
  throw refusal(code, `${name}: the field '${path}' must be an array but is of type ${typeOf(current)}`);
}

function arithmetic(name: string, isProduct: boolean): UpdateOperator {
  const overflow = (): never => {
    throw badValue(`Failed to apply ${name}: the result does not fit a 64-bit integer`);
  };
  return {
    creates: true,
    compile(operand, path) {
      const kind = kindOf(operand);
      if (kind === null) {
        throw typeMismatch(`Cannot ${isProduct ? 'multiply' : 'increment'} with non-numeric argument: {${path}: ...}`);
      }
      const zero =
        kind === 'int' ? 0 : kind === 'long' ? 0n : kind === 'double' ? toDouble(0) : closeDecimal(decimalOf(0));
      return (current) => {
        if (current === undefined) return isProduct ? zero : operand;
        if (!isNumber(current)) {
          throw typeMismatch(
            `Cannot apply ${name} to a value of non-numeric type: the field '${path}' is of type ${typeOf(current)}`,
          );
        }
        const result = isProduct ? multiplyNumbers(current, operand, overflow) : addNumbers(current, operand, overflow);
        return replaceBy(current, result);
      };
    },
  };
}

function extreme(direction: 1 | -1): UpdateOperator {
  return {
    creates: true,
    compile: (operand) => (current) =>
      current === undefined || compareValues(operand, current) * direction > 0 ? operand : current,
  };
}

interface PushSpec {
  readonly each: readonly unknown[];
  readonly position: number | null;
  readonly slice: number | null;
  readonly order: ((a: unknown, b: unknown) => number) | null;
}

const PUSH_CLAUSES = new Set(['$each', '$position', '$slice', '$sort']);

/** A document with `$each` holds modifiers; anything else is the value to push. */
function parsePush(operand: unknown): PushSpec {
  if (!isDocument(operand) || !Object.hasOwn(operand, '$each')) {
    return { each: [operand], position: null, slice: null, order: null };
  }
  for (const name of Object.keys(operand)) {
    if (!PUSH_CLAUSES.has(name)) throw badValue(`Unrecognized clause in $push: ${name}`);
  }
  const each = operand['$each'];
  if (!Array.isArray(each)) throw badValue('The argument to $each in $push must be an array');
  return {
    each,
    position: clauseInteger(operand, '$position'),
    slice: clauseInteger(operand, '$slice'),
    order: Object.hasOwn(operand, '$sort') ? parsePushSort(operand['$sort']) : null,
  };
}

function clauseInteger(operand: Doc, name: string): number | null {
  if (!Object.hasOwn(operand, name)) return null;
  const value = integerOf(operand[name]);
  if (value === null) throw badValue(`The value for ${name} must be an integer value but was ${typeOf(operand[name])}`);
  return value;
}

function parsePushSort(spec: unknown): (a: unknown, b: unknown) => number {
  if (!isDocument(spec)) {
    const direction = integerOf(spec);
    if (direction !== 1 && direction !== -1) throw badValue('The $sort element value must be either 1 or -1');
    return (a, b) => compareValues(a, b) * direction;
  }
  if (Object.keys(spec).length === 0) throw badValue('The $sort pattern is empty when it should be a set of fields.');
  const sort = compileSort(spec);
  return (a, b) => sort.compare(isDocument(a) ? a : {}, isDocument(b) ? b : {});
}

const push: UpdateOperator = {
  creates: true,
  compile(operand, path) {
    const { each, position, slice, order } = parsePush(operand);
    return (current) => {
      const array = current === undefined ? [] : arrayAt(current, '$push', path);
      let result = [...array];
      const at = position === null ? array.length : position < 0 ? Math.max(0, array.length + position) : position;
      if (at >= array.length) for (const item of each) result.push(item);
      else result = [...array.slice(0, at), ...each, ...array.slice(at)];
      if (order !== null) result.sort(order);
      if (slice !== null) result = slice < 0 ? result.slice(slice) : result.slice(0, slice);
      return current === undefined ? result : replaceBy(current, result);
    };
  },
};

const addToSet: UpdateOperator = {
  creates: true,
  compile(operand, path) {
    let items: readonly unknown[] = [operand];
    if (isDocument(operand) && Object.keys(operand)[0] === '$each') {
      const each = operand['$each'];
      if (!Array.isArray(each)) throw typeMismatch('The argument to $each in $addToSet must be an array');
      if (Object.keys(operand).length > 1) throw badValue('Found unexpected fields after $each in $addToSet');
      items = each;
    }
    return (current) => {
      const array = current === undefined ? [] : arrayAt(current, '$addToSet', path);
      const known = new Set(array.map(keyOf));
      const added = items.filter((item) => {
        const key = keyOf(item);
        if (known.has(key)) return false;
        known.add(key);
        return true;
      });
      return added.length === 0 && current !== undefined ? current : [...array, ...added];
    };
  },
};

/** The condition of `$pull` on one element: operators and regular expressions test it, a document its fields. */
function pullTest(condition: unknown): (element: unknown) => boolean {
  if (typeOf(condition) === 'regex') return compileValueTest({ $in: [condition] });
  if (!isDocument(condition)) return (element) => element !== undefined && compareValues(element, condition) === 0;
  if (isOperatorDocument(condition) && !/^\$(?:and|or|nor|expr|comment|jsonSchema)$/.test(Object.keys(condition)[0]!)) {
    return compileValueTest(condition);
  }
  const filter = compileFilter(condition);
  return (element) => isDocument(element) && filter.matches(element);
}

function removal(name: string, parse: (operand: unknown) => (element: unknown) => boolean): UpdateOperator {
  return {
    creates: false,
    compile(operand, path) {
      const removes = parse(operand);
      return (current) => {
        if (current === undefined) return current;
        const array = arrayAt(current, name, path);
        const kept = array.filter((element) => !removes(element));
        return kept.length === array.length ? current : kept;
      };
    },
  };
}

const pop: UpdateOperator = {
  creates: false,
  compile(operand, path) {
    const end = integerOf(operand);
    if (end !== 1 && end !== -1) throw failedToParse('$pop expects 1 or -1');
    return (current) => {
      if (current === undefined) return current;
      const array = arrayAt(current, '$pop', path, 14);
      if (array.length === 0) return current;
      return end === 1 ? array.slice(0, -1) : array.slice(1);
    };
  },
};

const BIT_OPERATIONS: Readonly<Record<string, (a: bigint, b: bigint) => bigint>> = {
  and: (a, b) => a & b,
  or: (a, b) => a | b,
  xor: (a, b) => a ^ b,
};

function isIntegerKind(value: unknown): value is number | bigint {
  const kind = kindOf(value);
  return kind === 'int' || kind === 'long';
}

const bit: UpdateOperator = {
  creates: true,
  compile(operand, path) {
    if (!isDocument(operand) || Object.keys(operand).length === 0) {
      throw badValue(`The $bit modifier needs a document with and, or or xor for '${path}'`);
    }
    const steps = Object.keys(operand).map((name) => {
      const apply = Object.hasOwn(BIT_OPERATIONS, name) ? BIT_OPERATIONS[name] : undefined;
      const mask = operand[name];
      if (apply === undefined) throw badValue(`The $bit modifier only supports 'and', 'or', and 'xor', not '${name}'`);
      if (!isIntegerKind(mask)) throw badValue('The $bit modifier field must be an Integer(32/64 bit)');
      return { apply, mask };
    });
    return (current) => {
      let value: unknown = current === undefined ? 0 : current;
      for (const { apply, mask } of steps) {
        if (!isIntegerKind(value)) {
          throw badValue(
            `Cannot apply $bit to a value of non-integral type: the field '${path}' is of type ${typeOf(value)}`,
          );
        }
        const wide = typeof value === 'bigint' || typeof mask === 'bigint';
        value = narrow(apply(BigInt(value), BigInt(mask)), wide, (exact) => BigInt.asIntN(64, exact));
      }
      return replaceBy(current, value);
    };
  },
};

const currentDate: UpdateOperator = {
  creates: true,
  compile(operand, path) {
    let isTimestamp = false;
    if (isDocument(operand)) {
      const type = operand['$type'];
      if (Object.keys(operand).length !== 1 || (type !== 'date' && type !== 'timestamp')) {
        throw badValue(
          "The '$type' string field is required to be 'date' or 'timestamp': {$currentDate: {field: {$type: 'date'}}}",
        );
      }
      isTimestamp = type === 'timestamp';
    } else if (typeof operand !== 'boolean') {
      throw badValue(
        `${typeOf(operand)} is not valid type for $currentDate of '${path}'. Please use a boolean ('true') or a $type expression`,
      );
    }
    return (current, { now }) =>
      replaceBy(current, isTimestamp ? new Timestamp({ t: Math.floor(now.getTime() / 1000), i: 1 }) : now);
  },
};

const assign: UpdateOperator = {
  creates: true,
  compile: (operand) => (current) => replaceBy(current, operand),
};

/** The update operators by name; `$rename` is made of two of them by the compiler. */
export const UPDATE_OPERATORS: Readonly<Record<string, UpdateOperator>> = {
  $set: assign,
  $setOnInsert: { ...assign, onInsertOnly: true },
  $unset: { creates: false, compile: () => (current) => (current === undefined ? current : ABSENT) },
  $inc: arithmetic('$inc', false),
  $mul: arithmetic('$mul', true),
  $min: extreme(-1),
  $max: extreme(1),
  $push: push,
  $addToSet: addToSet,
  $pull: removal('$pull', pullTest),
  $pullAll: removal('$pullAll', (operand) => {
    if (!Array.isArray(operand)) throw badValue('$pullAll requires an array argument');
    const keys = new Set(operand.map(keyOf));
    return (element) => keys.has(keyOf(element));
  }),
  $pop: pop,
  $bit: bit,
  $currentDate: currentDate,
};
