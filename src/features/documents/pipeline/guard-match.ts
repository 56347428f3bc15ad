import type { Document } from 'bson';
import { isJsonObject } from '../../collections/fields/field-type.js';
import { GEO_CONDITIONS, LIST_CONDITIONS, PLAIN_CONDITIONS, VALUE_CONDITIONS } from './expression-operators.js';
import { guardExpression, requireConstantPattern, requirePatternOptions } from './guard-expression.js';
import {
  endsInId,
  isWrapped,
  literalForms,
  readLiteral,
  type DocumentShape,
  type PipelineSource,
  badPipeline,
  refusedName,
  requireObject,
  requirePath,
  requireText,
} from './pipeline-literals.js';
import { requireReadableFilter } from '../reply/redact-fields.js';

const GEO_KEYS: ReadonlySet<string> = new Set(['$geometry', '$box', '$polygon', '$center', '$centerSphere']);

/**
 * A filter that is an argument of a stage, restricted to what is visible. It runs on the stored documents themselves,
 * with the service's notes in them and what the caller does not see: 400 FIELD_NOT_READABLE for one that could read
 * any of that.
 */
export function guardArgument(filter: unknown, source: PipelineSource, shape: DocumentShape): Document {
  const guarded = guardMatch(filter, shape);
  requireReadableFilter(guarded, source.unseen);
  // The database may try it on documents that the caller does not read, where it can fail.
  if (source.isRestricted && hasExpression(guarded)) {
    throw badPipeline('$expr cannot be part of the filter of another stage: use a $match stage after it');
  }
  return { $and: [source.visible, guarded] };
}

/** Whether a guarded filter evaluates an expression, at any depth: alone among conditions, those can fail. */
export function hasExpression(filter: unknown): boolean {
  if (Array.isArray(filter)) return filter.some(hasExpression);
  return isJsonObject(filter) && Object.entries(filter).some(([key, value]) => key === '$expr' || hasExpression(value));
}

/**
 * A `$match` filter as it may be run: only conditions on the list, constants compared with `_id` and Date fields typed.
 * 400 otherwise.
 */
export function guardMatch(filter: unknown, shape: DocumentShape, prefix = ''): Document {
  if (!isJsonObject(filter)) throw badPipeline('$match needs an object');
  return Object.fromEntries(
    Object.entries(filter).map(([key, value]): [string, unknown] => {
      if (!key.startsWith('$')) {
        shape.requireSeen(prefix + key);
        return [requirePath(key, '$match'), guardField(value, prefix + key, shape)];
      }
      switch (key) {
        case '$and':
        case '$or':
        case '$nor':
          return [key, requireList(value, key).map((part) => guardMatch(part, shape, prefix))];
        case '$expr':
          return [key, guardExpression(value, shape)];
        case '$comment':
          return [key, requireText(value, key)];
        default:
          throw refusedName(key, 'condition');
      }
    }),
  );
}

function guardField(value: unknown, path: string, shape: DocumentShape): unknown {
  if (isConditions(value)) return guardConditions(value, path, shape);
  const forms = literalForms(value, path, shape);
  if (forms.length > 1) return { $in: forms };
  return isJsonObject(value) && !isWrapped(value) ? { $eq: forms[0] } : forms[0];
}

/** True for `{$gt: 1}`; false for a value, also one that is an object. */
function isConditions(value: unknown): value is Record<string, unknown> {
  return isJsonObject(value) && !isWrapped(value) && Object.keys(value).some((key) => key.startsWith('$'));
}

function guardConditions(conditions: Record<string, unknown>, path: string, shape: DocumentShape): Document {
  const guarded: Document = {};
  for (const [operator, operand] of Object.entries(conditions)) {
    const [name, value] = guardCondition(operator, operand, path, shape);
    if (name in guarded) {
      // Both forms of an identifier are a list, which may meet another one; then each has to hold.
      throw badPipeline(
        `$match: write the conditions on ${JSON.stringify(path.slice(0, 60))} as separate parts of $and`,
      );
    }
    guarded[name] = value;
  }
  if ('$options' in guarded && !('$regex' in guarded)) throw badPipeline('$options needs $regex beside it');
  return guarded;
}

function guardCondition(operator: string, operand: unknown, path: string, shape: DocumentShape): [string, unknown] {
  if (VALUE_CONDITIONS.has(operator)) return guardValueCondition(operator, operand, path, shape);
  if (LIST_CONDITIONS.has(operator)) {
    const list = requireList(operand, operator, 0);
    return [operator, list.flatMap((item) => guardListItem(operator, item, path, shape))];
  }
  if (PLAIN_CONDITIONS.has(operator)) return [operator, readLiteral(operand)];
  if (GEO_CONDITIONS.has(operator)) return [operator, guardShape(operand, operator)];
  switch (operator) {
    case '$regex':
      return [operator, requireConstantPattern(operand, operator)];
    case '$options':
      requirePatternOptions(operand, '$regex');
      return [operator, operand];
    case '$not':
      if (!isConditions(operand)) throw badPipeline('$not needs conditions such as {"$gt": 1}');
      return [operator, guardConditions(operand, path, shape)];
    case '$elemMatch':
      return [operator, guardElement(operand, path, shape)];
    default:
      throw refusedName(operator, 'condition');
  }
}

function guardValueCondition(
  operator: string,
  operand: unknown,
  path: string,
  shape: DocumentShape,
): [string, unknown] {
  const forms = literalForms(operand, path, shape);
  if (forms.length === 1) return [operator, forms[0]];
  if (operator === '$eq') return ['$in', forms];
  if (operator === '$ne') return ['$nin', forms];
  return [operator, operand];
}

function guardListItem(operator: string, item: unknown, path: string, shape: DocumentShape): unknown[] {
  if (operator === '$all' && isJsonObject(item) && '$elemMatch' in item) {
    return [guardConditions(item, path, shape)];
  }
  const forms = literalForms(item, path, shape);
  return operator === '$all' && endsInId(path) ? forms.slice(0, 1) : forms;
}

function guardElement(operand: unknown, path: string, shape: DocumentShape): Document {
  const element = requireObject(operand, '$elemMatch');
  const logical = Object.keys(element).some((key) => key === '$and' || key === '$or' || key === '$nor');
  return isConditions(element) && !logical
    ? guardConditions(element, path, shape)
    : guardMatch(element, shape, `${path}.`);
}

/** Geometry: numbers and names of shapes, no other operators. */
function guardShape(value: unknown, operator: string): unknown {
  if (Array.isArray(value)) return value.map((item) => guardShape(item, operator));
  if (!isJsonObject(value)) return value;
  return Object.fromEntries(
    Object.entries(value).map(([key, inner]) => {
      if (key.startsWith('$') && !GEO_KEYS.has(key)) throw refusedName(key, `part of ${operator}`);
      return [key, guardShape(inner, operator)];
    }),
  );
}

function requireList(value: unknown, what: string, least = 1): unknown[] {
  if (!Array.isArray(value) || value.length < least) throw badPipeline(`${what} needs a list`);
  return value;
}
