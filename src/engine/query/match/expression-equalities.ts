import { isDocument } from '../../codec/document.js';
import { isPlainValue, type PlainValue } from './equalities.js';

/** A field that equals a constant wherever an expression is true. */
export interface ExpressionEquality {
  readonly path: string;
  readonly value: PlainValue;
}

/**
 * The equalities of fields with constants that hold where the expression of an `$expr` is true, for an index to look
 * up. A filter's equality finds more (the items of a list, too), so the expression still has to be asked.
 */
export function equalitiesOfExpression(expression: unknown): ExpressionEquality[] {
  if (!isDocument(expression)) return [];
  const parts = expression['$and'];
  if (Array.isArray(parts)) return parts.flatMap(equalitiesOfExpression);
  const operands = expression['$eq'];
  if (!Array.isArray(operands) || operands.length !== 2) return [];
  const [left, right] = operands as [unknown, unknown];
  return equalityOf(left, right) ?? equalityOf(right, left) ?? [];
}

function equalityOf(field: unknown, other: unknown): ExpressionEquality[] | null {
  if (typeof field !== 'string' || !/^\$[^$]/.test(field)) return null;
  const isLiteral = isDocument(other) && Object.keys(other).join() === '$literal';
  const value: unknown = isLiteral ? other['$literal'] : other;
  if (!isLiteral && typeof value === 'string' && value.startsWith('$')) return null;
  // A missing field is not null here.
  return value !== null && isPlainValue(value) ? [{ path: field.slice(1), value }] : null;
}
