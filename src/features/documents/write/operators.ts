import { tooLarge } from '../../../errors.js';
import type { Field } from '../../collections/fields/field.js';
import { isJsonObject } from '../../collections/fields/field-type.js';
import { Problems } from '../reply/problems.js';
import { ANY, storeValue, type ValueShape } from '../store/document-shape.js';
import { compareStored, valueKey } from './value-key.js';

/** Notes a broken rule of the path that is changed; its text follows the path. */
export type Fail = (rule: string, text: string) => void;

/** Makes of the value that is stored the one that is to be; undefined = nothing is there. */
export type Apply = (stored: unknown, fail: Fail) => unknown;

/** An operator with its operand, judged as far as that goes without the document. */
export interface ReadOperator {
  apply: Apply;
  /** Values that it may put there. */
  puts: readonly unknown[];
}

/** The path of an operator, and the collector of its errors. */
export interface OperatorPlace {
  name: string;
  parts: readonly string[];
  shape: ValueShape;
  problems: Problems;
  now: number;
}

/** Reads an operand; null where it is wrong, which is noted. */
type ReadOperand = (operand: unknown, place: OperatorPlace) => ReadOperator | null;

const MAX_VALUES = 1000;
const MAX_LIST_ITEMS = 10_000;
/** Beyond it whole numbers lose digits, which no counter should: decision 2. */
const EXACT = Number.MAX_SAFE_INTEGER;

function wrong({ problems, parts }: OperatorPlace, text: string, rule = 'operator'): null {
  problems.add(rule, text, parts.join('.'));
  return null;
}

/** `$inc` and `$mul`: what is not there counts as zero, and the result is judged. */
function arithmetic(of: (stored: number, operand: number) => number): ReadOperand {
  return (operand, place) => {
    const { name, shape } = place;
    if (shape.type !== 'Number' && shape.type !== 'any') {
      return wrong(place, `is a ${shape.type}: ${name} changes numbers`);
    }
    const declared = 'declared' in shape ? shape.declared : {};
    if (typeof operand !== 'number') return wrong(place, `must be changed by a number with ${name}`);
    if (declared.integer && !Number.isInteger(operand)) {
      return wrong(place, `must be changed by a whole number with ${name}`, 'integer');
    }
    const [min, max] = [(declared.min ?? -EXACT) as number, (declared.max ?? EXACT) as number];
    const values = declared.enum as number[] | undefined;
    const isFitting = (result: number): boolean =>
      Math.abs(result) <= EXACT &&
      result >= min &&
      result <= max &&
      (values?.includes(result) ?? true) &&
      (!declared.integer || Number.isInteger(result));
    return {
      puts: [operand],
      apply(stored = 0, fail) {
        // The database's whole numbers have no negative zero.
        const result = typeof stored === 'number' ? of(stored, operand) + 0 : NaN;
        if (!isFitting(result)) fail(name, resultText(name, { values, integer: declared.integer, min, max }));
        return result;
      },
    };
  };
}

/** What a result has to be, in the words of the declaration. */
function resultText(
  name: string,
  { values, integer, min, max }: { values?: readonly number[]; integer?: boolean; min: number; max: number },
): string {
  const parts = [
    values && `one of ${values.join(', ')}`,
    integer && 'a whole number',
    `at least ${min}`,
    `at most ${max}`,
  ];
  return `must be a number after ${name}: ${parts.filter(Boolean).join(', ')}`;
}

const ORDERED: ReadonlySet<string> = new Set(['Number', 'String', 'Date', 'any']);

/** `$min` (1) and `$max` (-1): the operand is judged only where it is what stays. */
function extreme(sign: 1 | -1): ReadOperand {
  return (operand, place) => {
    const { name, parts, shape, problems, now } = place;
    if (!ORDERED.has(shape.type)) return wrong(place, `is a ${shape.type}: ${name} compares numbers, texts and dates`);
    if ('declared' in shape && (shape.declared as Partial<Field>).nocase) {
      return wrong(place, `is compared without regard to case, which ${name} is not`);
    }
    if (typeof operand === 'object') return wrong(place, `must be given a number, a text or a date by ${name}`);
    const own = new Problems(parts);
    const value = storeValue(shape, operand, own, now);
    if (value === undefined) {
      problems.take(own);
      return null;
    }
    const { first } = own;
    return {
      puts: [value],
      apply(stored, fail) {
        if (stored !== undefined && sign * compareStored(stored, value) <= 0) return stored;
        if (first) fail(first.rule, first.message.slice(first.field.length + 1));
        return value;
      },
    };
  };
}

/** The values of a list operator, given alone or in the modifier that takes several, and its other modifiers. */
interface ListOperand {
  values: readonly unknown[];
  slice: number | null;
  position: number | null;
}

const MODIFIERS: Readonly<Record<string, { all: readonly string[]; text: string }>> = {
  $push: { all: ['$each', '$slice', '$position'], text: '$each, $slice and $position by $push' },
  $addToSet: { all: ['$each'], text: '$each by $addToSet' },
  $pull: { all: ['$in'], text: '$in by $pull' },
};

function readListOperand(operand: unknown, place: OperatorPlace): ListOperand | null {
  const { name, shape } = place;
  if (shape.type !== 'Array' && shape.type !== 'any') {
    return wrong(place, `is a ${shape.type}: ${name} changes lists`);
  }
  const { all, text } = MODIFIERS[name]!;
  const [several] = all as [string];
  const read: ListOperand = { values: [operand], slice: null, position: null };
  if (isJsonObject(operand) && Object.hasOwn(operand, several)) {
    const { [several]: values, $slice: slice = null, $position: position = null } = operand;
    if (Object.keys(operand).some((key) => !all.includes(key))) {
      return wrong(place, `can be given ${text}, nothing else`);
    }
    if (!Array.isArray(values)) return wrong(place, `must be given a list by ${several}`);
    if (!isCount(slice) || !isCount(position)) {
      return wrong(place, 'must be given whole numbers by $slice and $position');
    }
    Object.assign(read, { values, slice, position });
  }
  if (read.values.length > MAX_VALUES) return wrong(place, `can be given at most ${MAX_VALUES} values at once`);
  return read;
}

const isCount = (value: unknown): value is number | null =>
  value === null || (Number.isSafeInteger(value) && Math.abs(value as number) <= 1_000_000_000);

/** The values as items of the list; null where one is not what the list takes. */
function readItems({ values }: ListOperand, { parts, shape, problems, now }: OperatorPlace): unknown[] | null {
  const own = new Problems(parts);
  const items = shape.type === 'Array' ? shape.items : ANY;
  const stored: unknown[] = [];
  for (let at = 0; at < values.length && !own.full; at++) {
    own.enter(at);
    stored.push(storeValue(items, values[at], own, now));
    own.leave();
  }
  problems.take(own);
  return own.summary === null ? stored : null;
}

const push: ReadOperand = (operand, place) => {
  const read = readListOperand(operand, place);
  const values = read && readItems(read, place);
  if (!values) return null;
  const { slice, position } = read;
  const apply = onList(place.shape, ALL_RULES, (stored) => {
    const items = stored.toSpliced(position ?? stored.length, 0, ...values);
    if (slice === null) return items;
    return slice < 0 ? items.slice(slice) : items.slice(0, slice);
  });
  return { puts: values, apply };
};

const addToSet: ReadOperand = (operand, place) => {
  const read = readListOperand(operand, place);
  const values = read && readItems(read, place);
  if (!values) return null;
  const apply = onList(place.shape, SIZE_RULES, (stored) => {
    const held = new Set(stored.map(valueKey));
    const fresh = values.filter((value) => {
      const key = valueKey(value);
      return !held.has(key) && held.add(key);
    });
    return fresh.length === 0 ? stored : [...stored, ...fresh];
  });
  return { puts: values, apply };
};

/** Only the type of what is taken out counts: what breaks a constraint that was added later can go. */
const pull: ReadOperand = (operand, place) => {
  const read = readListOperand(operand, place);
  if (!read) return null;
  const { shape, now } = place;
  const items = shape.type === 'Array' ? shape.items : ANY;
  const values = read.values.map((value) => storeValue(items, value, new Problems(), now));
  if (values.includes(undefined)) return wrong(place, `must be given values of type ${items.type} by $pull`, 'type');
  const gone = new Set(values.map(valueKey));
  const apply = onList(shape, LEAST_RULES, (stored) => stored.filter((item) => !gone.has(valueKey(item))));
  return { puts: [], apply: (stored, fail) => (stored === undefined ? undefined : apply(stored, fail)) };
};

const ALL_RULES = null;
const SIZE_RULES: ReadonlySet<string> = new Set(['minItems', 'maxItems']);
const LEAST_RULES: ReadonlySet<string> = new Set(['minItems']);

/** Changes the list that is there, none being an empty one, and judges the whole of the result by some of its rules. */
function onList(
  shape: ValueShape,
  rules: ReadonlySet<string> | null,
  change: (stored: readonly unknown[]) => readonly unknown[],
): Apply {
  return (stored = [], fail) => {
    if (!Array.isArray(stored)) {
      fail('type', 'must be an Array');
      return stored;
    }
    const before = stored as readonly unknown[];
    const result = change(before);
    if (result === before) return before;
    let isRefused = false;
    if (shape.type === 'Array') {
      shape.check?.find(result, { now: null, afford: () => true }, (rule, text) => {
        if (rules && !rules.has(rule)) return;
        isRefused = true;
        fail(rule, text);
      });
    }
    if (!isRefused && result.length > MAX_LIST_ITEMS && result.length > before.length) throw new ListTooLong();
    return result;
  };
}

/** A list without bounds of its own would have more items than any may have. */
export class ListTooLong extends Error {
  refusalOf(path: string): Error {
    return tooLarge('DOCUMENT_TOO_LARGE', `${path} would have more than the ${MAX_LIST_ITEMS} items a list may`);
  }
}

/** The update operators (writes.md 1), but for `$unset`, which clears like null does. */
export const BODY_OPERATORS: Readonly<Record<string, ReadOperand>> = {
  $inc: arithmetic((stored, operand) => stored + operand),
  $mul: arithmetic((stored, operand) => stored * operand),
  $min: extreme(1),
  $max: extreme(-1),
  $push: push,
  $addToSet: addToSet,
  $pull: pull,
};
