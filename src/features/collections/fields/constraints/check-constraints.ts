import type { FieldShape } from '../field.js';
import { compileConstraints, namesOf } from './check-value.js';
import { NOW, type ConstraintName } from './constraint.js';
import { constraintRow, isAsTight } from './constraint-rows.js';

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
