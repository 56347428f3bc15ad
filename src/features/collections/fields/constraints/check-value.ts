import type { FieldShape } from '../field.js';
import type { ConstraintName } from './constraint.js';
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
