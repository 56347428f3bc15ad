import type { ObjectId } from 'bson';
import { type AppError, forbidden, invalid } from '../../../errors.js';
import type { Collection } from '../../collections/collection.js';
import { KEPT_FIELDS } from '../../collections/fields/field.js';
import { findDate, isJsonObject, isFieldsObject } from '../../collections/fields/field-type.js';
import { Problems } from '../reply/problems.js';
import {
  ANY,
  documentShape,
  storeValue,
  type FieldRule,
  type ObjectShape,
  type ValueShape,
} from '../store/document-shape.js';
import { rejectUnsafeUpdate } from '../store/unsafe-values.js';
import { ListTooLong, BODY_OPERATORS, type Apply } from './operators.js';
import { valueKey } from './value-key.js';

type Fields = Record<string, unknown>;

/** What becomes of one path. */
interface Outcome {
  apply: Apply;
  /** What is set whatever is stored; null for an operator. */
  plain: { value: unknown } | null;
  /** Values that may be there afterwards. */
  puts: readonly unknown[];
  /** Takes away only: where nothing is there nothing is made on the way. */
  clears: boolean;
}

/** The change of one path. */
export interface Step extends Outcome {
  path: string;
  parts: readonly string[];
  /** The declared values on the way, the path's own last. */
  ways: readonly ValueShape[];
}

/** The body of an update, judged as far as that goes without the stored document. */
export interface DocumentChange {
  steps: readonly Step[];
  /** The body names the owner; null = something that no owner can be. */
  owner: { value: string | null } | null;
  /** Moments of the document as it was fetched, sent back with it. */
  moments: readonly { name: string; at: Date }[];
}

const MAX_DOTTED_PATHS = 500;
const ARRAY_POSITION = /^(?:0|[1-9]\d{0,5})$/;
const KEPT_TEXT = 'is kept by the service and cannot be changed';

/**
 * Reads the body of PUT and PATCH (rest-api.md 4.2; decisions.md 3; writes.md 1 where operators are taken). Throws 400
 * with every problem, 403 OWNER_IMMUTABLE.
 */
export function readChange(
  collection: Collection,
  id: ObjectId,
  body: Fields,
  { now, takesOperators }: { now: number; takesOperators: boolean },
): DocumentChange {
  if (Object.keys(body).length === 0) {
    throw invalid('INVALID_BODY', 'The body is empty: name at least one field to change');
  }
  const sent = takesOperators ? takeOperators(body) : { plain: body, operators: [], unset: [] };
  rejectUnsafeUpdate(sent.plain);
  rejectOverlap(Object.keys(sent.plain));
  requireOwnFields(collection, sent);
  return new ChangeReader(collection, id, now).read(sent);
}

const MAX_OPERATOR_PATHS = 50;

/** One operator of a body on one path. */
interface SentOperator {
  name: string;
  path: string;
  operand: unknown;
}

/** The body of an update, apart: what is set plainly, which operators there are, and which names `$unset` lists. */
interface SentChange {
  plain: Record<string, unknown>;
  operators: SentOperator[];
  unset: string[];
}

/**
 * Takes the operators out of the body of an update. 400 INVALID_BODY for more than 50 of their paths and for hostile
 * values, CONFLICTING_PATHS for a path that is changed twice, or together with one inside it.
 */
function takeOperators(body: Record<string, unknown>): SentChange {
  if (!Object.keys(body).some((key) => key.startsWith('$'))) return { plain: body, operators: [], unset: [] };
  const plain: Record<string, unknown> = {};
  const operators: SentOperator[] = [];
  let unset: string[] = [];
  for (const [key, value] of Object.entries(body)) {
    if (key === '$unset') {
      unset = requireNames(value);
    } else if (!Object.hasOwn(BODY_OPERATORS, key)) {
      plain[key] = value;
    } else {
      if (!isJsonObject(value)) throw invalid('INVALID_BODY', `${key} takes an object of paths and values`);
      for (const [path, operand] of Object.entries(value)) operators.push({ name: key, path, operand });
    }
  }
  if (operators.length + unset.length > MAX_OPERATOR_PATHS) {
    throw invalid('INVALID_BODY', `An update can name at most ${MAX_OPERATOR_PATHS} paths by operators`);
  }
  for (const { name, path, operand } of operators) rejectUnsafeUpdate({ [path]: innerValues(name, operand) });
  for (const path of unset) rejectUnsafeUpdate({ [path]: null });
  rejectConflicts([...operators.map(({ path }) => path), ...unset], Object.keys(plain));
  return { plain, operators, unset };
}

function requireNames(value: unknown): string[] {
  if (Array.isArray(value) && value.every((name) => typeof name === 'string')) return value;
  throw invalid('INVALID_BODY', '$unset takes a list of names');
}

/** The operators whose operand may be an object with a modifier for its values. */
const VALUES_IN: Readonly<Record<string, string>> = { $push: '$each', $addToSet: '$each', $pull: '$in' };

/** What of an operand would be stored: the operand itself, or the values in its modifier. */
function innerValues(name: string, operand: unknown): unknown {
  const modifier = VALUES_IN[name];
  return modifier && isJsonObject(operand) && Object.hasOwn(operand, modifier) ? operand[modifier] : operand;
}

/** No two of the changed paths, and none of them with a plain one, may be the same or lie inside each other. */
function rejectConflicts(changed: readonly string[], plain: readonly string[]): void {
  const seen = new Set<string>(plain);
  const parents = new Set(plain.flatMap(parentsOf));
  for (const path of changed) {
    if (seen.has(path) || parents.has(path) || parentsOf(path).some((parent) => seen.has(parent))) {
      throw conflicting(path);
    }
    seen.add(path);
    for (const parent of parentsOf(path)) parents.add(parent);
  }
}

function parentsOf(path: string): string[] {
  const parents: string[] = [];
  for (let dot = path.indexOf('.'); dot !== -1; dot = path.indexOf('.', dot + 1)) parents.push(path.slice(0, dot));
  return parents;
}

function conflicting(path: string): AppError {
  return invalid('CONFLICTING_PATHS', `The body changes ${short(path)} more than once: send one change of it`);
}

/** A path within a message. */
function short(path: string): string {
  return path.length > 80 ? `${path.slice(0, 80)}…` : path;
}

/** The service's fields and the owner are no field of an operator (400 and 403 as for plain values). */
function requireOwnFields({ rls }: Collection, { operators, unset }: SentChange): void {
  if (operators.length + unset.length === 0) return;
  const problems = new Problems();
  for (const path of [...operators.map((operator) => operator.path), ...unset]) {
    const top = path.split('.', 1)[0]!;
    if (KEPT_FIELDS.includes(top)) problems.add('system', KEPT_TEXT, path);
    else if (top === rls?.ownerField) throw forbidden('OWNER_IMMUTABLE', 'Owner field immutable');
  }
  problems.throwIfAny();
}

/** A path and a path inside it have no order in which both could be meant. */
function rejectOverlap(keys: readonly string[]): void {
  const dotted = keys.filter((key) => key.includes('.'));
  if (dotted.length === 0) return;
  if (dotted.length > MAX_DOTTED_PATHS) {
    throw invalid('INVALID_BODY', `An update can name at most ${MAX_DOTTED_PATHS} dotted keys`);
  }
  const all = new Set(keys);
  for (const key of dotted) {
    for (let dot = key.indexOf('.'); dot !== -1; dot = key.indexOf('.', dot + 1)) {
      const parent = key.slice(0, dot);
      if (!all.has(parent)) continue;
      const text = `The body changes ${short(parent)} and also ${short(key)} inside it: send one of them`;
      throw invalid('INVALID_BODY', text);
    }
  }
}

/** The end of a path in the declared shape; `field` is null for a position, and for what nothing declares. */
interface PathEnd {
  shape: ValueShape;
  field: Pick<FieldRule, 'required' | 'default'> | null;
}

class ChangeReader {
  private readonly problems = new Problems();
  private readonly steps: Step[] = [];
  private readonly moments: { name: string; at: Date }[] = [];
  private readonly root: ObjectShape;

  constructor(
    private readonly collection: Collection,
    private readonly id: ObjectId,
    private readonly now: number,
  ) {
    this.root = documentShape(collection);
  }

  read({ plain, operators, unset }: SentChange): DocumentChange {
    const { problems, now } = this;
    const ownerField = this.collection.rls?.ownerField;
    let owner: DocumentChange['owner'] = null;
    for (const [path, value] of Object.entries(plain)) {
      const parts = path.split('.');
      if (KEPT_FIELDS.includes(parts[0]!)) this.readKept(parts, value);
      else if (parts[0] === ownerField) owner = this.readOwner(parts, value);
      else this.addStep(path, parts, (end) => this.readPlain(end, parts, value));
    }
    for (const path of unset) this.addStep(path, path.split('.'), (end) => this.readUnset(end, path));
    for (const { name, path, operand } of operators) {
      const parts = path.split('.');
      this.addStep(path, parts, ({ shape }) => {
        const read = BODY_OPERATORS[name]!(operand, { name, parts, shape, problems, now });
        return read && { ...read, plain: null, clears: name === '$pull' };
      });
    }
    problems.throwIfAny();
    return { steps: this.steps, owner, moments: this.moments };
  }

  /** Follows a path from the top of the document; notes a problem where it leads nowhere. */
  private addStep(path: string, parts: readonly string[], read: (end: PathEnd) => Outcome | null): void {
    const { problems } = this;
    const ways: ValueShape[] = [];
    let shape: ValueShape = this.root;
    let field: PathEnd['field'] = null;
    for (let at = 0; at < parts.length; at++) {
      const part = parts[at]!;
      field = null;
      if (shape.type === 'Object') {
        field = shape.fields.get(part) ?? null;
        if (!field && !shape.open) return problems.add('unknown', 'is not a field of this collection', path);
        shape = shape.fields.get(part)?.shape ?? ANY;
      } else if (shape.type === 'Array') {
        if (!ARRAY_POSITION.test(part)) {
          return problems.add('type', `must name a position: ${parentOf(parts, at)} is an Array`, path);
        }
        shape = shape.items;
      } else if (shape.type !== 'any') {
        return problems.add('type', `cannot be set: ${parentOf(parts, at)} must be a ${shape.type}`, path);
      }
      ways.push(shape);
    }
    const outcome = read({ shape, field });
    if (outcome) this.steps.push({ path, parts, ways, ...outcome });
  }

  /** A plain value; null sets a declared field back to its default, or takes it out. */
  private readPlain({ shape, field }: PathEnd, parts: readonly string[], sent: unknown): Outcome | null {
    if (field && sent === null) {
      if (!field.required) return cleared(field.default);
      this.problems.add('required', 'is required', parts.join('.'));
      return null;
    }
    for (const part of parts) this.problems.enter(part);
    const value = storeValue(shape, sent, this.problems, this.now);
    for (let left = parts.length; left > 0; left--) this.problems.leave();
    return { apply: () => value, plain: { value }, puts: [value], clears: false };
  }

  private readUnset({ shape, field }: PathEnd, path: string): Outcome | null {
    if (field?.required) {
      this.problems.add('required', 'is required', path);
      return null;
    }
    // A position in a list would hold null afterwards.
    if (field || (shape.type === 'any' && !/(^|\.)\d+$/.test(path))) return cleared(field?.default);
    this.problems.add('operator', 'is no field that $unset could take out: send the whole list', path);
    return null;
  }

  private readOwner(parts: readonly string[], value: unknown): { value: string | null } {
    const { shape } = this.root.fields.get(parts[0]!)!;
    const isFitting = parts.length === 1 && 'store' in shape && shape.store(value) !== undefined;
    return { value: isFitting && typeof value === 'string' ? value : null };
  }

  /** A fetched document may be sent back: what the service keeps is ignored where it says what is stored. */
  private readKept(parts: readonly string[], value: unknown): void {
    const [name] = parts as [string];
    if (parts.length === 1) {
      if (name === '_id' && typeof value === 'string' && value.toLowerCase() === this.id.toHexString()) return;
      // Only active documents can be updated, and these are what active ones have.
      if ((name === 'isDeleted' && value === false) || (name === 'deletedAt' && value === null)) return;
      const at = typeof value === 'string' ? findDate(value) : null;
      if (at && (name === 'createdAt' || name === 'updatedAt')) return void this.moments.push({ name, at });
    }
    this.problems.add('system', KEPT_TEXT, parts.join('.'));
  }
}

function parentOf(parts: readonly string[], at: number): string {
  return short(parts.slice(0, at).join('.'));
}

function cleared(value: FieldRule['default']): Outcome {
  return { apply: () => value, plain: { value }, puts: value === undefined ? [] : [value], clears: true };
}

/**
 * The document after the change, which shares with `stored` whatever stays. Only what the change touches is judged, by
 * what becomes of it. Throws 400 with every problem, 413.
 */
export function applyChange<T extends Fields>({ steps, moments }: DocumentChange, stored: T): T {
  const problems = new Problems();
  const next: Fields = { ...stored };
  for (const { name, at } of moments) {
    const held = stored[name];
    if (!(held instanceof Date) || held.getTime() !== at.getTime()) problems.add('system', KEPT_TEXT, name);
  }
  for (const step of steps) takeStep(next, step, problems);
  let judged: Set<string> | null = null;
  for (const step of steps) {
    if (!step.clears && step.parts.length > 1) judgeWay(next, step, problems, (judged ??= new Set()));
  }
  problems.throwIfAny();
  return next as T;
}

/** Copies what is on the way to a path, and puts at its end what the step makes of what is there. */
function takeStep(root: Fields, step: Step, problems: Problems): void {
  const { parts, ways, clears } = step;
  let holder: Fields | unknown[] = root;
  for (let at = 0; at < parts.length; at++) {
    const part = parts[at]!;
    if (Array.isArray(holder)) {
      if (!ARRAY_POSITION.test(part)) return clears ? undefined : noteBlocked(problems, step, at);
      if (Number(part) >= holder.length) return clears ? undefined : noteNoPosition(problems, parts, at);
    }
    const within = holder as Fields;
    const held = Object.hasOwn(within, part) ? within[part] : undefined;
    if (at === parts.length - 1) return putValue(within, part, held, step, problems);
    const isMissing = held === undefined;
    if (isMissing && clears) return;
    if (isMissing && ways[at]!.type === 'Array') return noteNoPosition(problems, parts, at + 1);
    if (Array.isArray(held)) holder = within[part] = [...(held as unknown[])];
    else if (isMissing) holder = within[part] = presetOf(ways[at]!);
    else if (isFieldsObject(held)) holder = within[part] = { ...held };
    else return clears ? undefined : noteBlocked(problems, step, at + 1);
  }
}

/** A new object on the way to a path has its defaults. */
function presetOf(way: ValueShape): Fields {
  const fields = way.type === 'Object' ? [...way.fields.values()] : [];
  return Object.fromEntries(
    fields.flatMap(({ name, default: preset }) => (preset === undefined ? [] : [[name, preset]])),
  );
}

function putValue(holder: Fields, name: string, held: unknown, { path, apply }: Step, problems: Problems): void {
  let value: unknown;
  try {
    value = apply(held, (rule, text) => problems.add(rule, text, path));
  } catch (error) {
    throw error instanceof ListTooLong ? error.refusalOf(path) : error;
  }
  if (value !== undefined) holder[name] = value;
  else if (held !== undefined) delete holder[name];
}

function noteBlocked(problems: Problems, { path, parts }: Step, at: number): void {
  problems.add('path', `cannot be set: ${parts.slice(0, at).join('.')} is not an object`, path);
}

/** One beyond the end would fill the gap with nulls, or make an object of a missing list. */
function noteNoPosition(problems: Problems, parts: readonly string[], at: number): void {
  problems.add('position', 'is not there: send the whole array to add to it', parts.slice(0, at + 1).join('.'));
}

/** What the change of a part asks of the whole: an object has its required fields, a list no item twice. */
function judgeWay(next: Fields, { parts, ways }: Step, problems: Problems, judged: Set<string>): void {
  let value: unknown = next;
  for (const [at, part] of parts.slice(0, -1).entries()) {
    if (typeof value !== 'object' || value === null) return;
    value = (value as Fields)[part];
    const way = ways[at]!;
    const path = parts.slice(0, at + 1).join('.');
    if (judged.has(path)) continue;
    judged.add(path);
    if (way.type === 'Object' && isJsonObject(value)) {
      for (const { required, name } of way.fields.values()) {
        if (!required || Object.hasOwn(value, name)) continue;
        problems.add('required', 'is required', `${path}.${name}`);
      }
    }
    if (way.type === 'Array' && way.declared.uniqueItems && Array.isArray(value)) {
      if (new Set(value.map(valueKey)).size === value.length) continue;
      problems.add('uniqueItems', 'must not have the same item twice', path);
    }
  }
}
