import type { ObjectId } from 'bson';
import { forbidden, invalid } from '../../../errors.js';
import type { Collection } from '../../collections/collection.js';
import { findDate } from '../../collections/fields/field-type.js';
import { KEPT_FIELDS } from '../../collections/fields/field.js';
import { Problems } from '../reply/problems.js';
import { documentShape, storeValue, type ObjectShape } from '../store/document-shape.js';
import { refuseHostileUpdate } from '../store/hostile-keys.js';
import {
  addCondition,
  followChangedPath,
  openReading,
  short,
  type Condition,
  type PathEnd,
  type Reading,
} from './change-path.js';
import { readOperators, takeOperators, type ReadOperators, type SentChange } from './operators/read-operators.js';

const MAX_DOTTED_PATHS = 500;

/**
 * An update's body, checked: only these paths change, so that clients who change different keys never overwrite each
 * other.
 */
export interface DocumentChange extends ReadOperators {
  set: Record<string, unknown>;
  unset: string[];
  conditions: Condition[];
  /** The body names the owner field: it may only say what is stored. null = something that no stored owner can be. */
  owner?: { value: string | null };
}

/** The paths that an update changes; `results` where operators change some. */
export type ChangedFields = Pick<DocumentChange, 'set' | 'unset'> & Partial<Pick<DocumentChange, 'results'>>;

/**
 * Reads the body of PUT and PATCH (rest-api.md 4.2; decisions.md 3; writes.md 1 where operators are taken). Dotted keys
 * are checked like whole ones; what only the stored document can tell (whether a parent has its required fields, an
 * array its position, a result fits) becomes a condition of the write. Throws 400 with every problem.
 */
export function readDocumentChange(
  collection: Collection,
  id: ObjectId,
  body: Record<string, unknown>,
  { now, takesOperators }: { now: number; takesOperators: boolean },
): DocumentChange {
  if (Object.keys(body).length === 0) {
    throw invalid('INVALID_BODY', 'The body is empty: name at least one field to change');
  }
  const sent = takesOperators ? takeOperators(body) : { plain: body, operators: [], unset: [] };
  const { plain } = sent;
  const keys = Object.keys(plain);
  refuseHostileUpdate(plain);
  refuseOverlap(keys);
  requireOwnFields(collection, sent);
  const given = [...keys.filter((key) => plain[key] !== null), ...sent.operators.map(({ path }) => path)];
  const reading = openReading(given, now);
  const { conditions } = reading;
  const change: DocumentChange = { set: {}, unset: [], conditions, operators: {}, results: new Map() };
  const shape = documentShape(collection);
  for (const key of keys) {
    const parts = key.split('.');
    const top = parts[0]!;
    if (KEPT_FIELDS.includes(top)) {
      readKeptField(reading, id, parts, plain[key]);
    } else if (top === collection.rls?.ownerField) {
      change.owner = readOwner(shape, parts, plain[key]);
    } else {
      const end = followChangedPath(reading, shape, parts);
      if (end) readPath(reading, change, end, plain[key]);
    }
  }
  for (const path of sent.unset) {
    const end = followChangedPath(reading, shape, path.split('.'));
    if (end) readUnset(reading, change, end);
  }
  Object.assign(change, readOperators(reading, shape, sent.operators));
  reading.problems.throwIfAny();
  return change;
}

/** The service's fields and the owner are no field of an operator (400 and 403 as for plain values). */
function requireOwnFields({ rls }: Collection, { operators, unset }: SentChange): void {
  const problems = new Problems();
  for (const path of [...operators.map((operator) => operator.path), ...unset]) {
    const top = path.split('.')[0]!;
    if (KEPT_FIELDS.includes(top)) problems.add('system', 'is kept by the service and cannot be changed', path);
    else if (top === rls?.ownerField) throw forbidden('OWNER_IMMUTABLE', 'Owner field immutable');
  }
  problems.throwIfAny();
}

/** Clears a path; nothing has to be there. */
function readUnset({ problems }: Reading, change: DocumentChange, { path, parts, shape, field }: PathEnd): void {
  if (field?.required) return problems.add('required', 'is required', path);
  // A position in a list would hold null afterwards.
  if (!field && (shape.type !== 'any' || /^\d+$/.test(parts.at(-1)!))) {
    return problems.add('operator', 'is no field that $unset could take out: send the whole list', path);
  }
  change.unset.push(path);
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
function readKeptField(reading: Reading, id: ObjectId, parts: string[], value: unknown): void {
  const name = parts[0]!;
  const text = 'is kept by the service and cannot be changed';
  if (parts.length === 1) {
    if (name === '_id' && typeof value === 'string' && value.toLowerCase() === id.toHexString()) return;
    // Only active documents can be updated, and these are what active ones have.
    if ((name === 'isDeleted' && value === false) || (name === 'deletedAt' && value === null)) return;
    const date = typeof value === 'string' ? findDate(value) : null;
    if (date && (name === 'createdAt' || name === 'updatedAt')) {
      addCondition(reading, {
        filter: { [name]: date },
        problem: { field: name, rule: 'system', message: `${name} ${text}` },
      });
      return;
    }
  }
  reading.problems.add('system', text, parts.join('.'));
}

function readOwner(root: ObjectShape, parts: string[], value: unknown): { value: string | null } {
  const { shape } = root.fields.get(parts[0]!)!;
  const fits = parts.length === 1 && 'store' in shape && shape.store(value) !== undefined;
  return { value: fits && typeof value === 'string' ? value : null };
}

/** Reads a plain value for a path; null clears an optional declared field. */
function readPath(reading: Reading, change: DocumentChange, end: PathEnd, value: unknown): void {
  const { path, shape, field, uniqueList } = end;
  if (field && value === null) {
    if (field.required) return reading.problems.add('required', 'is required', path);
    // Clearing what is not there changes nothing, so it needs no parent.
    change.unset.push(path);
    return;
  }
  for (const condition of end.conditions) addCondition(reading, condition);
  const problems = new Problems(end.parts);
  change.set[path] = storeValue(shape, value, problems, reading.now);
  reading.problems.take(problems);
  if (uniqueList === null) return;
  if (reading.placed.has(uniqueList)) {
    return reading.problems.add('uniqueItems', 'is the second item of one list', path);
  }
  reading.placed.add(uniqueList);
  addCondition(reading, noOtherItem(uniqueList, path, change.set[path]));
}

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
