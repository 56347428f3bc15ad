import { invalid, type AppError } from '../../../../errors.js';
import { isJsonObject } from '../../../collections/fields/field-type.js';
import { rejectUnsafeUpdate } from '../../store/unsafe-values.js';
import { BODY_OPERATORS } from './operators.js';

const MAX_OPERATOR_PATHS = 50;

/** One operator of a body on one path. */
export interface SentOperator {
  name: string;
  path: string;
  operand: unknown;
}

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
export function short(path: string): string {
  return path.length > 80 ? `${path.slice(0, 80)}…` : path;
}
