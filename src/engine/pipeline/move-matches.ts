import { type Doc, isDocument } from '../codec/document.js';
import { isTruthy } from '../query/values/value.js';
import type { Stage } from './stage.js';

interface NamedStage {
  readonly name: string;
  readonly spec: unknown;
  readonly stage: Stage;
}

/**
 * Puts each `$match` in front of sorts and of stages that leave its fields as they are, so that the collection may
 * answer it by an index and fewer documents are worked on.
 */
export function moveMatches<T extends NamedStage>(stages: readonly T[]): T[] {
  const moved: T[] = [];
  for (const stage of stages) {
    let at = moved.length;
    if (stage.name === '$match') while (at > 0 && leavesAlone(moved[at - 1]!, stage.stage.reads)) at--;
    moved.splice(at, 0, stage);
  }
  return moved;
}

/** True for a stage before and after which these top-level fields have the same values; null: all of them. */
function leavesAlone({ name, spec }: NamedStage, fields: ReadonlySet<string> | null): boolean {
  if (name === '$sort') return true;
  if (fields === null) return false;
  const isNone = (roots: readonly string[]): boolean => !roots.some((root) => fields.has(root));
  switch (name) {
    case '$addFields':
    case '$set':
      return isDocument(spec) && isNone(rootsOf(Object.keys(spec)));
    case '$unset':
      return isNone(rootsOf([spec].flat().map(String)));
    case '$project':
      return isDocument(spec) && [...fields].every((field) => passes(spec, field));
    default:
      return false;
  }
}

function rootsOf(paths: readonly string[]): string[] {
  return paths.map((path) => path.split('.')[0]!);
}

/** True when a projection hands a top-level field on as it is. */
function passes(spec: Doc, field: string): boolean {
  const others = Object.keys(spec).filter((path) => path !== '_id');
  const excludes = others.length > 0 ? isExclusion(spec[others[0]!]) : isExclusion(spec['_id']);
  if (field === '_id' && !Object.hasOwn(spec, '_id')) return !rootsOf(others).includes('_id');
  if (excludes) return !rootsOf(Object.keys(spec)).includes(field);
  return Object.hasOwn(spec, field) && isInclusion(spec[field]);
}

function isExclusion(value: unknown): boolean {
  return isFlag(value) && !isTruthy(value);
}

function isInclusion(value: unknown): boolean {
  return isFlag(value) && isTruthy(value);
}

/** A number or a boolean: any other value of a projection computes something. */
function isFlag(value: unknown): boolean {
  return typeof value === 'number' || typeof value === 'boolean';
}
