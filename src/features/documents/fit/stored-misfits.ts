import type { ValueCheck } from '../../collections/fields/constraints/check-value.js';
import { isJsonObject } from '../../collections/fields/field-type.js';
import type { ObjectShape, ValueShape } from '../store/document-shape.js';
import type { Problems } from '../reply/problems.js';

/**
 * Notes what of a stored document is not what an insert would have stored: a text where a date belongs counts although
 * a client could send it, since lists compare stored values. `fields` are the document's own, without what the service
 * keeps.
 */
export function findMisfits(shape: ObjectShape, fields: Record<string, unknown>, problems: Problems): void {
  for (const field of shape.fields.values()) {
    const value = Object.hasOwn(fields, field.name) ? fields[field.name] : undefined;
    if (value === undefined || value === null) {
      if (field.required) problems.add('required', 'is required', field.name);
      continue;
    }
    problems.enter(field.name);
    findMisfit(field.shape, value, problems);
    problems.leave();
  }
  if (shape.open) return;
  for (const name of Object.keys(fields)) {
    if (!shape.fields.has(name)) problems.add('unknown', 'is not a field of this collection', name);
  }
}

function findMisfit(shape: ValueShape, value: unknown, problems: Problems): void {
  if (shape.type === 'any') return;
  if (shape.type === 'Object' && isJsonObject(value) && !(value instanceof Date)) {
    return findMisfits(shape, value, problems);
  }
  if (shape.type === 'Array' && Array.isArray(value)) {
    for (let at = 0; at < value.length && !problems.full; at++) {
      problems.enter(at);
      findMisfit(shape.items, value[at], problems);
      problems.leave();
    }
    return findBroken(shape.check, value, problems);
  }
  if (!isStoredForm(shape, value)) problems.add('type', `must be a ${shape.type}`);
  else if ('check' in shape) findBroken(shape.check, value, problems);
}

function findBroken(check: ValueCheck | null, value: unknown, problems: Problems): void {
  check?.find(value, problems.at(null), (rule, text) => problems.add(rule, text));
}

function isStoredForm(shape: ValueShape, value: unknown): boolean {
  if (shape.type === 'Date') return value instanceof Date;
  return 'store' in shape && shape.store(value) !== undefined;
}
