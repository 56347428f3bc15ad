import { invalid, type AppError } from '../../../../errors.js';
import { isJsonObject } from '../../../collections/fields/field-type.js';
import type { ObjectShape } from '../../store/document-shape.js';
import { refuseHostileUpdate } from '../../store/hostile-keys.js';
import { addCondition, followChangedPath, short, type PathEnd, type Reading } from '../change-path.js';
import { addToSet, pull, push } from './list-operators.js';
import { inc, max, min, mul } from './number-operators.js';
import type { OperatorRow, ResultIn } from './operator.js';

const MAX_OPERATOR_PATHS = 50;

/** The update operators (writes.md 1), but for `$unset`, which clears like null does. */
const OPERATORS: Readonly<Record<string, OperatorRow>> = {
  $inc: inc,
  $mul: mul,
  $min: min,
  $max: max,
  $push: push,
  $addToSet: addToSet,
  $pull: pull,
};

/** One operator of a body on one path. */
export interface SentOperator {
  name: string;
  path: string;
  operand: unknown;
}

/** The operators of an update's database document, each with its paths. */
export type DatabaseOperators = Record<string, Record<string, unknown>>;

/** The body of an update, apart: what is set plainly, which operators there are, and which names `$unset` lists. */
export interface SentChange {
  plain: Record<string, unknown>;
  operators: SentOperator[];
  unset: string[];
}

/**
 * Takes the operators out of the body of an update. 400 INVALID_BODY for more than 50 of their paths and for hostile
 * values, CONFLICTING_PATHS for a path that is changed twice, or together with one inside it.
 */
export function takeOperators(body: Record<string, unknown>): SentChange {
  const plain: Record<string, unknown> = {};
  const operators: SentOperator[] = [];
  let unset: string[] = [];
  for (const [key, value] of Object.entries(body)) {
    if (key === '$unset') {
      unset = requireNames(value);
    } else if (!Object.hasOwn(OPERATORS, key)) {
      plain[key] = value;
    } else {
      if (!isJsonObject(value)) throw invalid('INVALID_BODY', `${key} takes an object of paths and values`);
      for (const [path, operand] of Object.entries(value)) operators.push({ name: key, path, operand });
    }
  }
  if (operators.length + unset.length > MAX_OPERATOR_PATHS) {
    throw invalid('INVALID_BODY', `An update can name at most ${MAX_OPERATOR_PATHS} paths by operators`);
  }
  for (const { name, path, operand } of operators) refuseHostileUpdate({ [path]: innerValues(name, operand) });
  for (const path of unset) refuseHostileUpdate({ [path]: null });
  const changed = [...operators.map(({ path }) => path), ...unset];
  if (changed.length > 0) refuseConflicts(changed, Object.keys(plain));
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
function refuseConflicts(changed: readonly string[], plain: readonly string[]): void {
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

/** What the operators of a body come to. */
export interface ReadOperators {
  operators: DatabaseOperators;
  /** By path, for the rules that name it. */
  results: Map<string, ResultIn | null>;
}

/** Reads operators; what is wrong is noted, what depends on the stored document becomes conditions of the write. */
export function readOperators(reading: Reading, root: ObjectShape, sent: readonly SentOperator[]): ReadOperators {
  const operators: DatabaseOperators = {};
  const results = new Map<string, ResultIn | null>();
  for (const { name, path, operand } of sent) {
    const row = OPERATORS[name]!;
    const end = followChangedPath(reading, root, path.split('.'));
    if (!end) continue;
    if (end.uniqueList !== null) {
      reading.problems.add('uniqueItems', 'cannot be changed by an operator: its list has no item twice', path);
      continue;
    }
    const effect = row.read(end, operand, reading);
    if (!effect) continue;
    for (const condition of conditionsOnTheWay(row, end)) addCondition(reading, condition);
    for (const condition of effect.conditions) addCondition(reading, condition);
    operators[row.database] = { ...operators[row.database], [path]: effect.operand };
    results.set(path, effect.resultIn);
  }
  return { operators, results };
}

/** Where nothing is made nothing has to be there. */
function conditionsOnTheWay({ makesParents }: OperatorRow, end: PathEnd): PathEnd['conditions'] {
  return makesParents ? end.conditions : [];
}
