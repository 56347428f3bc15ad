import type { AppError, FieldProblem } from '../../../errors.js';
import { Problems } from '../reply/problems.js';
import { ANY, type ObjectShape, type ValueShape } from '../store/document-shape.js';

const ARRAY_POSITION = /^(?:0|[1-9]\d{0,5})$/;

/** Something that must hold of the stored document at the moment of the update, and what to answer when it does not. */
export interface Condition {
  filter: Record<string, unknown>;
  /** Asked by the write in place of the filter: the rest of it the database refuses by itself. */
  quick?: Record<string, unknown>;
  problem: FieldProblem;
  /** Answered instead of 400 with the problem. */
  refusal?: () => AppError;
}

/** What is gathered while the body of an update is read. */
export interface Reading {
  conditions: Condition[];
  problems: Problems;
  now: number;
  /** The paths that the body gives a value, with their parents. */
  supplied: ReadonlySet<string>;
  /** Filters already among the conditions, as text; empty where there is but one. */
  seen: Set<string>;
  /** Lists without repeated items of which a position is given a value: one at a time. */
  placed: Set<string>;
}

export function openReading(paths: readonly string[], now: number): Reading {
  const supplied = new Set<string>();
  for (const path of paths) {
    supplied.add(path);
    for (let dot = path.indexOf('.'); dot !== -1; dot = path.indexOf('.', dot + 1)) supplied.add(path.slice(0, dot));
  }
  return { conditions: [], problems: new Problems(), now, supplied, seen: new Set(), placed: new Set() };
}

/** The end of a path in the declared shape. */
export interface PathEnd {
  path: string;
  parts: readonly string[];
  shape: ValueShape;
  /** A declared field; null for a position, and for what nothing declares. */
  field: { required: boolean } | null;
  /** What must hold on the way for a value to be set there. */
  conditions: Condition[];
  /** The list without repeated items of which the path is a position; null = none. */
  uniqueList: string | null;
}

/** Follows a path from the top of a document; notes a problem and answers null where it leads nowhere. */
export function followChangedPath(reading: Reading, root: ObjectShape, parts: readonly string[]): PathEnd | null {
  const { problems } = reading;
  const path = parts.join('.');
  const end: PathEnd = { path, parts, shape: root, field: null, conditions: [], uniqueList: null };
  for (let at = 0; at < parts.length; at++) {
    const part = parts[at]!;
    const parent = parts.slice(0, at).join('.');
    const { shape } = end;
    end.field = null;
    if (shape.type === 'Object') {
      if (at > 0) end.conditions.push(...requiredSiblings(reading, shape, parent, part));
      const field = shape.fields.get(part);
      if (!field && !shape.open) {
        problems.add('unknown', 'is not a field of this collection', path);
        return null;
      }
      end.field = field ?? null;
      end.shape = field?.shape ?? ANY;
    } else if (shape.type === 'Array') {
      if (!ARRAY_POSITION.test(part)) {
        problems.add('type', `must name a position: ${short(parent)} is an Array`, path);
        return null;
      }
      end.conditions.push(existingItem(parent, part, true));
      if (shape.declared.uniqueItems) {
        if (at < parts.length - 1) {
          problems.add('uniqueItems', `${ONLY_WHOLE} ${short(parent)}`, path);
          return null;
        }
        end.uniqueList = parent;
      }
      end.shape = shape.items;
    } else if (shape.type === 'any') {
      if (/^\d+$/.test(part)) end.conditions.push(existingItem(parent, part, false));
    } else {
      problems.add('type', `cannot be set: ${short(parent)} must be a ${shape.type}`, path);
      return null;
    }
  }
  return end;
}

const ONLY_WHOLE = 'cannot be changed alone, since no item may be there twice: send all of';

/** A change inside an object may create it: then its required fields must come along, or be there already. */
function requiredSiblings({ supplied }: Reading, shape: ObjectShape, parent: string, changed: string): Condition[] {
  const conditions: Condition[] = [];
  for (const field of shape.fields.values()) {
    const path = `${parent}.${field.name}`;
    if (!field.required || field.name === changed || supplied.has(path)) continue;
    conditions.push({
      filter: { [path]: { $exists: true } },
      problem: { field: path, rule: 'required', message: `${path} is required` },
    });
  }
  return conditions;
}

/**
 * A position changes an item that is there; one beyond the end would fill the gap with nulls, or make an object of a
 * missing array.
 */
function existingItem(parent: string, position: string, declaredArray: boolean): Condition {
  const path = `${parent}.${position}`;
  const exists = { [path]: { $exists: true } };
  const isArray = { [parent]: { $type: 'array' } };
  const notArray = { [parent]: { $not: { $type: 'array' } } };
  return {
    filter: declaredArray ? { $and: [isArray, exists] } : { $or: [notArray, exists] },
    problem: { field: path, rule: 'position', message: `${path} is not there: send the whole array to add to it` },
  };
}

/** Adds a condition once. */
export function addCondition({ conditions, seen }: Reading, condition: Condition): void {
  const [first] = conditions;
  if (!first) {
    conditions.push(condition);
    return;
  }
  if (seen.size === 0) seen.add(JSON.stringify(first.filter));
  const text = JSON.stringify(condition.filter);
  if (seen.has(text)) return;
  seen.add(text);
  conditions.push(condition);
}

/** A path within a message. */
export function short(path: string): string {
  return path.length > 80 ? `${path.slice(0, 80)}…` : path;
}
