import type { Document } from 'bson';
import { tooLarge } from '../../../../errors.js';
import { isJsonObject } from '../../../collections/fields/field-type.js';
import { Problems } from '../../reply/problems.js';
import { ANY, storeValue, type ArrayShape, type ValueShape } from '../../store/document-shape.js';
import type { Condition, PathEnd, Reading } from '../change-path.js';
import { oneOfFilters, type OperatorEffect, type OperatorRow } from './operator.js';

const MAX_LIST_ITEMS = 10_000;
const MAX_VALUES = 1000;

interface ListTarget {
  path: string;
  parts: readonly string[];
  items: ValueShape;
  declared: Partial<ArrayShape['declared']>;
}

function listTarget(name: string, { path, parts, shape }: PathEnd, { problems }: Reading): ListTarget | null {
  if (shape.type === 'Array') return { path, parts, items: shape.items, declared: shape.declared };
  if (shape.type === 'any') return { path, parts, items: ANY, declared: {} };
  problems.add('operator', `is a ${shape.type}: ${name} changes lists`, path);
  return null;
}

const absent = (path: string): Document => ({ [path]: { $exists: false } });

function holdsList(path: string): Condition {
  return oneOfFilters(path, [absent(path), { [path]: { $type: 'array' } }], 'type', 'must be an Array');
}

/** The condition that a list has at most a number of items before the write. */
const atMost = (path: string, count: number): Document => absent(`${path}.${count}`);

/** The database's expression for the items of a list that is perhaps not there. */
const itemsOf = (path: string): Document => ({ $ifNull: [`$${path}`, []] });

/** Expressions know no positions in lists. */
const hasPosition = (parts: readonly string[]): boolean => parts.some((part) => /^\d+$/.test(part));

function grownTooLarge(path: string): Partial<Condition> {
  return {
    refusal: () =>
      tooLarge('DOCUMENT_TOO_LARGE', `${path} would have more than the ${MAX_LIST_ITEMS} items a list may`),
  };
}

/** The values of an operator, or those of its `$each`, in stored form. */
function readValues({ parts, items }: ListTarget, values: readonly unknown[], reading: Reading): unknown[] | null {
  const { problems, now } = reading;
  if (values.length > MAX_VALUES) {
    problems.add('operator', `can be given at most ${MAX_VALUES} values at once`, parts.join('.'));
    return null;
  }
  const own = new Problems(parts);
  const stored: unknown[] = [];
  for (let at = 0; at < values.length && !own.full; at++) {
    own.enter(at);
    stored.push(storeValue(items, values[at], own, now));
    own.leave();
  }
  problems.take(own);
  return own.summary === null ? stored : null;
}

const keyOf = (value: unknown): string => JSON.stringify(value);

interface Modifiers {
  values: readonly unknown[];
  slice: number | null;
  position: number | null;
}

function readModifiers(name: string, operand: unknown, path: string, { problems }: Reading): Modifiers | null {
  if (!isJsonObject(operand) || !Object.hasOwn(operand, '$each')) {
    return { values: [operand], slice: null, position: null };
  }
  const { $each: values, $slice: slice = null, $position: position = null, ...others } = operand;
  const known = name === '$push' ? '$each, $slice and $position' : '$each';
  const isKnown = Object.keys(others).length === 0 && (name === '$push' || (slice ?? position) === null);
  if (!isKnown) {
    problems.add('operator', `can be given ${known} by ${name}, nothing else`, path);
  } else if (!Array.isArray(values)) {
    problems.add('operator', 'must be given a list by $each', path);
  } else if (!isWhole(slice) || !isWhole(position)) {
    problems.add('operator', 'must be given whole numbers by $slice and $position', path);
  } else {
    return { values: values as unknown[], slice, position };
  }
  return null;
}

const isWhole = (value: unknown): value is number | null =>
  value === null || (Number.isSafeInteger(value) && Math.abs(value as number) <= 1_000_000_000);

export const push: OperatorRow = {
  database: '$push',
  makesParents: true,
  read(end, operand, reading) {
    const target = listTarget('$push', end, reading);
    const modifiers = target && readModifiers('$push', operand, end.path, reading);
    const values = modifiers && readValues(target, modifiers.values, reading);
    if (!values) return null;
    const { path, declared } = target;
    const { slice, position } = modifiers;
    const conditions = [holdsList(path), ...sizesAfterPush(target, values.length, slice, reading)];
    if (declared.uniqueItems) {
      const text = 'must not have the same item twice';
      if (new Set(values.map(keyOf)).size < values.length) reading.problems.add('uniqueItems', text, path);
      conditions.push(oneOfFilters(path, [{ [path]: { $not: { $elemMatch: { $in: values } } } }], 'uniqueItems', text));
    }
    return {
      operand: {
        $each: values,
        ...(slice !== null && { $slice: slice }),
        ...(position !== null && { $position: position }),
      },
      conditions,
      resultIn:
        slice === null
          ? (results) => results.some((each) => values.includes(each)) || { [path]: { $in: results } }
          : null,
    };
  },
};

/** What lengths a list may have so that it fits once `added` values are pushed and it is cut to `slice`. */
function sizesAfterPush(
  { path, declared }: ListTarget,
  added: number,
  slice: number | null,
  reading: Reading,
): Condition[] {
  const { minItems = 0, maxItems = Infinity } = declared;
  const cut = slice === null ? Infinity : Math.abs(slice);
  const conditions: Condition[] = [];
  const most = `must have at most ${maxItems} items`;
  if (cut > maxItems) {
    if (added > maxItems) reading.problems.add('maxItems', most, path);
    else conditions.push(oneOfFilters(path, [atMost(path, maxItems - added)], 'maxItems', most));
  }
  if (cut > MAX_LIST_ITEMS && maxItems > MAX_LIST_ITEMS) {
    const size = oneOfFilters(path, [atMost(path, MAX_LIST_ITEMS - added)], 'size', 'has too many items');
    conditions.push({ ...size, ...grownTooLarge(path) });
  }
  const least = `must have at least ${minItems} items`;
  if (cut < minItems) {
    reading.problems.add('minItems', least, path);
  } else if (added < minItems) {
    const enough = { [`${path}.${minItems - added - 1}`]: { $exists: true } };
    conditions.push(oneOfFilters(path, [enough], 'minItems', least));
  }
  return conditions;
}

export const addToSet: OperatorRow = {
  database: '$addToSet',
  makesParents: true,
  read(end, operand, reading) {
    const target = listTarget('$addToSet', end, reading);
    const modifiers = target && readModifiers('$addToSet', operand, end.path, reading);
    const read = modifiers && readValues(target, modifiers.values, reading);
    if (!read) return null;
    const values = [...new Map(read.map((value) => [keyOf(value), value])).values()];
    const { path, declared } = target;
    const { minItems = 0, maxItems = Infinity } = declared;
    const conditions = [holdsList(path)];
    if (maxItems < Infinity) {
      conditions.push(
        oneOfFilters(path, roomForNew(target, values, maxItems), 'maxItems', `must have at most ${maxItems} items`),
      );
    } else {
      const size = oneOfFilters(path, roomForNew(target, values, MAX_LIST_ITEMS), 'size', 'has too many items');
      conditions.push({ ...size, ...grownTooLarge(path) });
    }
    // A list that is there has its least number of items already.
    if (values.length < minItems) {
      const there = { [path]: { $exists: true } };
      conditions.push(oneOfFilters(path, [there], 'minItems', `must have at least ${minItems} items`));
    }
    return {
      operand: { $each: values },
      conditions,
      resultIn: (results) => results.some((each) => values.includes(each)) || { [path]: { $in: results } },
    };
  },
};

/** The list has room for all of the values, or for those that it does not have. */
function roomForNew({ path, parts }: ListTarget, values: readonly unknown[], most: number): Document[] {
  const room = values.length <= most ? [atMost(path, most - values.length)] : [];
  if (values.length === 1) return [...room, { [path]: { $elemMatch: { $eq: values[0] } } }];
  if (hasPosition(parts)) return room.length > 0 ? room : [NEVER];
  const items = itemsOf(path);
  const added = {
    $filter: { input: { $literal: values }, as: 'value', cond: { $not: [{ $in: ['$$value', items] }] } },
  };
  return [...room, { $expr: { $lte: [{ $add: [{ $size: items }, { $size: added }] }, most] } }];
}

const NEVER: Document = { _id: { $in: [] } };

export const pull: OperatorRow = {
  database: '$pullAll',
  makesParents: false,
  read(end, operand, reading) {
    const target = listTarget('$pull', end, reading);
    const values = target && readPulled(target, operand, reading);
    if (!values) return null;
    const { path, parts, declared } = target;
    const conditions = [holdsList(path)];
    const least = pulledLeast(path, values, declared.minItems ?? 0, hasPosition(parts));
    if (least) conditions.push(least);
    return {
      operand: values,
      conditions,
      resultIn(results) {
        const left = results.filter((each) => !values.includes(each));
        return left.length > 0 && { [path]: { $in: left } };
      },
    } satisfies OperatorEffect;
  },
};

/** `value`, or those of `{$in: […]}`; what could not be stored in the list is in no list. */
function readPulled({ path, items }: ListTarget, operand: unknown, { problems, now }: Reading): unknown[] | null {
  const isMany = isJsonObject(operand) && Object.hasOwn(operand, '$in');
  const values: unknown = isMany ? operand.$in : [operand];
  if (isMany && Object.keys(operand).length > 1) {
    problems.add('operator', 'can be given $in by $pull, nothing else', path);
  } else if (!Array.isArray(values)) {
    problems.add('operator', 'must be given a list by $in', path);
  } else if (values.length > MAX_VALUES) {
    problems.add('operator', `can be given at most ${MAX_VALUES} values at once`, path);
  } else {
    // Only its type counts: what breaks a constraint that was added later can be taken out.
    const stored = values.map((value) => storeValue(items, value, new Problems(), now));
    if (!stored.includes(undefined)) return stored;
    problems.add('type', `must be given values of type ${items.type} by $pull`, path);
  }
  return null;
}

function pulledLeast(
  path: string,
  values: readonly unknown[],
  minItems: number,
  isPosition: boolean,
): Condition | null {
  if (minItems === 0) return null;
  const text = `must have at least ${minItems} items`;
  const kept = {
    $filter: { input: itemsOf(path), as: 'item', cond: { $not: [{ $in: ['$$item', { $literal: values }] }] } },
  };
  const enough = isPosition
    ? { [`${path}.${minItems + values.length - 1}`]: { $exists: true } }
    : { $expr: { $gte: [{ $size: kept }, minItems] } };
  return oneOfFilters(path, [absent(path), enough], 'minItems', text);
}
