import type { FieldShape } from '../field.js';
import { type ConstraintName, NOW } from './constraint.js';
import { CONSTRAINT_NAMES, constraintRow, isAsTight, type CheckTime } from './constraint-rows.js';

/** The constraints of a field or an item, ready for values of its type. */
export interface ValueCheck {
  /** The value as it is stored. */
  normalize: (value: unknown) => unknown;
  /** Reports each constraint that a normalized value breaks: its name, and the rest of a sentence. */
  find: (value: unknown, at: CheckTime, broken: (rule: ConstraintName, text: string) => void) => void;
}

/** Compiles sound constraints; null for a shape that has none. */
export function compileConstraints(shape: FieldShape): ValueCheck | null {
  const names = namesOf(shape);
  if (names.length === 0) return null;
  const normalizers = names.map((name) => constraintRow(name).normalize).filter((normalize) => normalize !== undefined);
  const checks = names.flatMap((name) => {
    const check = constraintRow(name).check?.(shape[name], shape.type);
    return check ? [{ name, check }] : [];
  });
  return {
    normalize: (value) => normalizers.reduce((normalized, normalize) => normalize(normalized), value),
    find(value, at, broken) {
      for (const { name, check } of checks) {
        const text = check(value, at);
        if (text !== null) broken(name, text);
      }
    },
  };
}

/** The names of a shape's constraints, in the order of their table. */
export function namesOf(shape: FieldShape): ConstraintName[] {
  return CONSTRAINT_NAMES.filter((name) => shape[name] !== undefined);
}

/** Constraints of `to` at any depth that values which fit `from` need not meet, each with its path. */
export function listTightened(from: FieldShape | null, to: FieldShape, path: string): string[] {
  const base = from?.type === to.type ? from : null;
  const own = namesOf(to)
    .filter((name) => base?.[name] === undefined || !isAsTight(name, to.type, base[name], to[name]))
    .filter((name) => constraintRow(name).check)
    .map((name) => `${path}: ${name}`);
  const items = to.items ? listTightened(base?.items ?? null, to.items, `${path}.items`) : [];
  const inner = (to.fields ?? []).flatMap((field) =>
    listTightened(base?.fields?.find(({ name }) => name === field.name) ?? null, field, `${path}.${field.name}`),
  );
  return [...own, ...items, ...inner];
}

/** Bounds of one thing: with the lower one above the upper one nothing fits. */
const PAIRS = [
  ['minLength', 'maxLength'],
  ['minItems', 'maxItems'],
  ['min', 'max'],
] as const;

/** What keeps the constraints of a declared shape from being kept, each as the rest of a sentence about the field. */
export function constraintProblems(shape: FieldShape): { name: ConstraintName; text: string }[] {
  const problems: { name: ConstraintName; text: string }[] = [];
  for (const name of namesOf(shape)) {
    const { types, problem } = constraintRow(name);
    if (!types.includes(shape.type)) {
      problems.push({ name, text: `cannot have ${name}: only ${types.map((type) => `a ${type}`).join(' or ')} can` });
      continue;
    }
    const text = problem?.(shape[name], shape.type) ?? null;
    if (text !== null) problems.push({ name, text: `has a ${name} that ${text}` });
  }
  if (problems.length > 0) return problems;
  for (const [lower, upper] of PAIRS) {
    const [from, to] = [shape[lower], shape[upper]];
    if (from === undefined || to === undefined || from === NOW || to === NOW) continue;
    if (isAsTight(lower, shape.type, to, from)) continue;
    problems.push({ name: lower, text: `fits no value: its ${lower} is above its ${upper}` });
  }
  const { enum: values = [], ...others } = shape;
  for (const value of values) {
    const text = violationOf(others, value);
    if (text !== null) problems.push({ name: 'enum', text: `lists ${JSON.stringify(value)}, which ${text}` });
  }
  return problems;
}

/** Why a value cannot be the default of a field with sound constraints; null = it can. */
export function defaultProblem(shape: FieldShape, value: string | number | boolean): string | null {
  if (constraintProblems(shape).length > 0) return null;
  const text = violationOf(shape, value);
  return text === null ? null : `has a default that ${text}`;
}

function violationOf(shape: FieldShape, value: unknown): string | null {
  const compiled = compileConstraints(shape);
  if (!compiled) return null;
  if (compiled.normalize(value) !== value) return 'would be stored otherwise: write it in the form that is stored';
  let found: string | null = null;
  compiled.find(value, { now: null, afford: () => true }, (_, text) => (found ??= text));
  return found;
}
