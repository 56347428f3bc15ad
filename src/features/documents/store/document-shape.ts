import type { Collection } from '../../collections/collection.js';
import { compileConstraints, type ValueCheck } from '../../collections/fields/constraints/check-value.js';
import type { Constraints } from '../../collections/fields/constraints/constraint.js';
import { FIELD_TYPE_RULES, isJsonObject } from '../../collections/fields/field-type.js';
import type { Field, FieldShape, FieldType } from '../../collections/fields/field.js';
import { MAX_RULED_CHARACTERS, ruledPaths } from '../../collections/rules/collection-rules.js';
import { hasRules } from '../../collections/rules/field-rules.js';
import type { Problems } from '../reply/problems.js';

/** A declared value, ready to check. `any` is content that nothing declares. */
export type ValueShape =
  | { type: 'any' }
  | {
      type: Exclude<FieldType, 'Object' | 'Array'>;
      store: (value: unknown) => unknown;
      check: ValueCheck | null;
      declared: Constraints;
    }
  | ObjectShape
  | ArrayShape;

export interface ArrayShape {
  type: 'Array';
  items: ValueShape;
  /** What is asked of the whole list; null = nothing. */
  check: ValueCheck | null;
  declared: Constraints;
}

export interface ObjectShape {
  type: 'Object';
  fields: ReadonlyMap<string, FieldRule>;
  /** Undeclared keys are kept as they come. */
  open: boolean;
}

export interface FieldRule {
  name: string;
  required: boolean;
  default: string | number | boolean | undefined;
  shape: ValueShape;
}

export const ANY: ValueShape = { type: 'any' };

const shapes = new WeakMap<Collection, ObjectShape>();

/**
 * The shape of a collection's documents, compiled once per loaded record. The owner field of a collection with RLS is
 * always known.
 */
export function documentShape(collection: Collection): ObjectShape {
  let shape = shapes.get(collection);
  if (!shape) {
    shape = compileDocument(collection);
    shapes.set(collection, shape);
  }
  return shape;
}

function compileDocument(collection: Collection): ObjectShape {
  const { mode, fields, rls } = collection;
  const declared = mode === 'enforced' ? fields : checkedFields(collection);
  const owner: Field[] =
    rls && !declared.some(({ name }) => name === rls.ownerField) ? [{ name: rls.ownerField, type: 'String' }] : [];
  const ruled = ruledPaths(collection).map((path) => path.split('.'));
  return compileObject([...boundFields(declared, ruled), ...owner], mode === 'flexible');
}

/** The fields with MAX_RULED_CHARACTERS where a path leads to a text that says nothing of its length (rules.md 9). */
function boundFields(fields: readonly Field[], paths: readonly (readonly string[])[]): Field[] {
  return fields.map((field) => {
    const rest = paths.filter(([name]) => name === field.name).map(([, ...inner]) => inner);
    return rest.length === 0 ? field : { ...field, ...boundShape(field, rest) };
  });
}

function boundShape<T extends FieldShape>(shape: T, paths: readonly (readonly string[])[]): T {
  if (shape.items) return { ...shape, items: boundShape(shape.items, paths) };
  if (shape.fields) return { ...shape, fields: boundFields(shape.fields, paths) };
  const isOpen = shape.type === 'String' && shape.maxLength === undefined && shape.enum === undefined;
  return isOpen ? { ...shape, maxLength: MAX_RULED_CHARACTERS } : shape;
}

/** The fields that a flexible collection checks: those that say who may do what. */
function checkedFields(collection: Collection): Field[] {
  const named = new Set(ruledPaths(collection).map((path) => path.split('.')[0]!));
  return collection.fields.filter((field) => named.has(field.name) || field.stamp || field.fixed || hasRules(field));
}

function compileObject(fields: readonly Field[], open: boolean): ObjectShape {
  return {
    type: 'Object',
    open,
    fields: new Map(
      fields.map((field) => [
        field.name,
        {
          name: field.name,
          required: field.required ?? false,
          default: field.default,
          shape: compileValue(field),
        },
      ]),
    ),
  };
}

function compileValue(shape: FieldShape): ValueShape {
  if (shape.type === 'Object') return compileObject(shape.fields ?? [], shape.fields === undefined);
  const check = compileConstraints(shape);
  if (shape.type === 'Array') {
    return { type: 'Array', items: shape.items ? compileValue(shape.items) : ANY, check, declared: shape };
  }
  return { type: shape.type, store: FIELD_TYPE_RULES[shape.type].store, check, declared: shape };
}

/**
 * The stored form of a value: dates converted, texts normalized, defaults filled in, cleared fields left out. Notes
 * what does not fit; the result then means nothing.
 */
export function storeValue(shape: ValueShape, value: unknown, problems: Problems, now: number): unknown {
  switch (shape.type) {
    case 'any':
      return value;
    case 'Object':
      if (isJsonObject(value)) return storeObject(shape, value, problems, now);
      break;
    case 'Array':
      if (Array.isArray(value)) return storeItems(shape, value, problems, now);
      break;
    default: {
      const stored = shape.store(value);
      if (stored !== undefined) return normalized(shape.check, stored, problems, now);
    }
  }
  problems.add('type', `must be a ${shape.type}`);
  return undefined;
}

function normalized(check: ValueCheck | null, value: unknown, problems: Problems, now: number): unknown {
  if (!check) return value;
  const stored = check.normalize(value);
  check.find(stored, problems.at(now), (rule, text) => problems.add(rule, text));
  return stored;
}

/** storeValue for an object: declared fields in declared order, then the further ones of an open object. */
export function storeObject(
  shape: ObjectShape,
  value: Record<string, unknown>,
  problems: Problems,
  now: number,
): Record<string, unknown> {
  if (shape.open && shape.fields.size === 0) return value;
  const stored: Record<string, unknown> = {};
  for (const field of shape.fields.values()) {
    const given = Object.hasOwn(value, field.name) ? value[field.name] : undefined;
    if (given === undefined || given === null) {
      if (field.required) problems.add('required', 'is required', field.name);
      else if (field.default !== undefined) stored[field.name] = field.default;
      continue;
    }
    problems.enter(field.name);
    stored[field.name] = storeValue(field.shape, given, problems, now);
    problems.leave();
  }
  for (const key of Object.keys(value)) {
    if (shape.fields.has(key)) continue;
    if (shape.open) stored[key] = value[key];
    else if (problems.full) break;
    else problems.add('unknown', 'is not a field of this collection', key);
  }
  return stored;
}

function storeItems(
  { items, check }: ArrayShape,
  values: readonly unknown[],
  problems: Problems,
  now: number,
): unknown {
  if (items.type === 'any') return normalized(check, values, problems, now);
  const stored: unknown[] = [];
  for (let at = 0; at < values.length && !problems.full; at++) {
    problems.enter(at);
    stored.push(storeValue(items, values[at], problems, now));
    problems.leave();
  }
  return normalized(check, stored, problems, now);
}
