import type { Document } from 'bson';
import { Problems } from '../../reply/problems.js';
import { storeValue, type ValueShape } from '../../store/document-shape.js';
import type { Condition, PathEnd, Reading } from '../change-path.js';

/**
 * Whether a field holds one of the values after the update, or a list with one of them: decided, or a condition on what
 * is stored before it.
 */
export type ResultIn = (values: readonly unknown[]) => boolean | Document;

/** An operator on one path, read. */
export interface OperatorEffect {
  /** The operand for the database. */
  operand: unknown;
  /** What must be stored for the result to fit. */
  conditions: Condition[];
  /** Null where only the stored document could tell. */
  resultIn: ResultIn | null;
}

/** An update operator of writes.md 1. */
export interface OperatorRow {
  /** The database's operator. */
  database: string;
  /** False where nothing is stored when nothing was there. */
  makesParents: boolean;
  /** Notes what is wrong with the operand, and answers null then. */
  read: (end: PathEnd, operand: unknown, reading: Reading) => OperatorEffect | null;
}

/** True if a value of the shape's type fits it. */
export function isFitting(shape: ValueShape, value: unknown, now: number): boolean {
  const problems = new Problems();
  storeValue(shape, value, problems, now);
  return problems.summary === null;
}

/** The condition that one of the filters holds, told as a broken rule of the path. */
export function oneOfFilters(path: string, filters: readonly Document[], rule: string, text: string): Condition {
  return {
    filter: filters.length === 1 ? filters[0]! : { $or: filters },
    problem: { field: path, rule, message: `${path} ${text}` },
  };
}
