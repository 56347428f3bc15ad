import type { ObjectId } from 'bson';
import { invalid, type FieldProblem } from '../../../errors.js';
import type { Collection } from '../../collections/collection.js';
import { findDate } from '../../collections/fields/find-date.js';
import { KEPT_FIELDS } from '../../collections/fields/field.js';
import { ANY, documentShape, storeValue, type ObjectShape, type ValueShape } from './document-shape.js';
import { refuseHostileUpdate } from './hostile-keys.js';
import { Problems } from '../reply/problems.js';

const MAX_DOTTED_PATHS = 500;
const ARRAY_POSITION = /^(?:0|[1-9]\d{0,5})$/;

/** Something that must hold of the stored document at the moment of the update, and what to answer when it does not. */
export interface Condition {
  filter: Record<string, unknown>;
  problem: FieldProblem;
}

/**
 * An update's body, checked: only these paths change, so that clients who change different keys never overwrite each
 * other.
 */
export interface DocumentChange {
  set: Record<string, unknown>;
  unset: string[];
  conditions: Condition[];
  /** The body names the owner field: it may only say what is stored. null = something that no stored owner can be. */
  owner?: { value: string | null };
}

/**
 * Reads the body of PUT and PATCH (rest-api.md 4.2; decisions.md 3). Dotted keys are checked like whole ones; what only
 * the stored document can tell (whether a parent has its required fields, an array its position) becomes a condition of
 * the write. Throws 400 with every problem.
 */
export function readDocumentChange(
  collection: Collection,
  id: ObjectId,
  body: Record<string, unknown>,
  now: number,
): DocumentChange {
  const keys = Object.keys(body);
  if (keys.length === 0) throw invalid('INVALID_BODY', 'The body is empty: name at least one field to change');
  refuseHostileUpdate(body);
  refuseOverlap(keys);
  const reading: Reading = {
    change: { set: {}, unset: [], conditions: [] },
    problems: new Problems(),
    now,
    supplied: suppliedPaths(body),
    seen: new Set(),
    placed: new Set(),
  };
  const shape = documentShape(collection);
  for (const key of keys) {
    const parts = key.split('.');
    const top = parts[0]!;
    if (KEPT_FIELDS.includes(top)) readKeptField(reading, id, parts, body[key]);
    else if (top === collection.rls?.ownerField) reading.change.owner = readOwner(shape, parts, body[key]);
    else readPath(reading, shape, parts, body[key]);
  }
  reading.problems.throwIfAny();
  return reading.change;
}

interface Reading {
  change: DocumentChange;
  problems: Problems;
  now: number;
  /** The paths that the body gives a value, with their parents. */
  supplied: ReadonlySet<string>;
  /** Filters already among the conditions, as text. */
  seen: Set<string>;
  /** Lists without repeated items of which a position is given a value: one at a time. */
  placed: Set<string>;
}

function suppliedPaths(body: Record<string, unknown>): Set<string> {
  const paths = new Set<string>();
  for (const [key, value] of Object.entries(body)) {
    if (value === null) continue;
    paths.add(key);
    for (let dot = key.indexOf('.'); dot !== -1; dot = key.indexOf('.', dot + 1)) paths.add(key.slice(0, dot));
  }
  return paths;
}

/** A path and a path inside it have no order in which both could be meant. */
function refuseOverlap(keys: readonly string[]): void {
  const dotted = keys.filter((key) => key.includes('.'));
  if (dotted.length === 0) return;
  if (dotted.length > MAX_DOTTED_PATHS) {
    throw invalid('INVALID_BODY', `An update can name at most ${MAX_DOTTED_PATHS} dotted keys`);
  }
  const all = new Set(keys);
  for (const key of dotted) {
    for (let dot = key.indexOf('.'); dot !== -1; dot = key.indexOf('.', dot + 1)) {
      const parent = key.slice(0, dot);
      if (all.has(parent)) {
        throw invalid(
          'INVALID_BODY',
          `The body changes ${short(parent)} and also ${short(key)} inside it: send one of them`,
        );
      }
    }
  }
}

/** A fetched document may be sent back: what the service keeps is ignored when it says what is stored, else refused. */
function readKeptField({ change, problems }: Reading, id: ObjectId, parts: string[], value: unknown): void {
  const name = parts[0]!;
  const text = 'is kept by the service and cannot be changed';
  if (parts.length === 1) {
    if (name === '_id' && typeof value === 'string' && value.toLowerCase() === id.toHexString()) return;
    // Only active documents can be updated, and these are what active ones have.
    if ((name === 'isDeleted' && value === false) || (name === 'deletedAt' && value === null)) return;
    const date = typeof value === 'string' ? findDate(value) : null;
    if (date && (name === 'createdAt' || name === 'updatedAt')) {
      change.conditions.push({
        filter: { [name]: date },
        problem: { field: name, rule: 'system', message: `${name} ${text}` },
      });
      return;
    }
  }
  problems.add('system', text, parts.join('.'));
}

function readOwner(root: ObjectShape, parts: string[], value: unknown): { value: string | null } {
  const { shape } = root.fields.get(parts[0]!)!;
  const fits = parts.length === 1 && 'store' in shape && shape.store(value) !== undefined;
  return { value: fits && typeof value === 'string' ? value : null };
}

function readPath(reading: Reading, root: ObjectShape, parts: string[], value: unknown): void {
  const path = parts.join('.');
  const conditions: Condition[] = [];
  let shape: ValueShape = root;
  let clearable = false;
  let unique: string | null = null;
  for (let at = 0; at < parts.length; at++) {
    const part = parts[at]!;
    const parent = parts.slice(0, at).join('.');
    clearable = false;
    if (shape.type === 'Object') {
      if (at > 0) conditions.push(...requiredSiblings(reading, shape, parent, part));
      const field = shape.fields.get(part);
      if (!field && !shape.open) return reading.problems.add('unknown', 'is not a field of this collection', path);
      if (field && value === null && at === parts.length - 1) {
        if (field.required) return reading.problems.add('required', 'is required', path);
        clearable = true;
      }
      shape = field?.shape ?? ANY;
    } else if (shape.type === 'Array') {
      if (!ARRAY_POSITION.test(part)) {
        return reading.problems.add('type', `must name a position: ${short(parent)} is an Array`, path);
      }
      conditions.push(existingItem(parent, part, true));
      if (shape.uniqueItems) {
        if (at < parts.length - 1) return reading.problems.add('uniqueItems', `${ONLY_WHOLE} ${short(parent)}`, path);
        unique = parent;
      }
      shape = shape.items;
    } else if (shape.type === 'any') {
      if (/^\d+$/.test(part)) conditions.push(existingItem(parent, part, false));
    } else {
      return reading.problems.add('type', `cannot be set: ${short(parent)} must be a ${shape.type}`, path);
    }
  }
  // Clearing what is not there changes nothing, so it needs no parent.
  if (clearable) {
    reading.change.unset.push(path);
    return;
  }
  for (const condition of conditions) addCondition(reading, condition);
  const problems = new Problems(parts);
  reading.change.set[path] = storeValue(shape, value, problems, reading.now);
  reading.problems.take(problems);
  if (unique === null) return;
  if (reading.placed.has(unique)) return reading.problems.add('uniqueItems', 'is the second item of one list', path);
  reading.placed.add(unique);
  addCondition(reading, noOtherItem(unique, path, reading.change.set[path]));
}

const ONLY_WHOLE = 'cannot be changed alone, since no item may be there twice: send all of';

/** A list without repeated items gets one at a position: no other may be equal. */
function noOtherItem(list: string, path: string, value: unknown): Condition {
  const message = `${list} must not have the same item twice`;
  return {
    filter: {
      $or: [{ [path]: { $eq: value, $not: { $type: 'array' } } }, { [list]: { $not: { $elemMatch: { $eq: value } } } }],
    },
    problem: { field: list, rule: 'uniqueItems', message },
  };
}

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

function addCondition({ change, seen }: Reading, condition: Condition): void {
  const text = JSON.stringify(condition.filter);
  if (seen.has(text)) return;
  seen.add(text);
  change.conditions.push(condition);
}

function short(path: string): string {
  return path.length > 80 ? `${path.slice(0, 80)}…` : path;
}
