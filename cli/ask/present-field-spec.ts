import { isDeepStrictEqual } from 'node:util';
import { namesOf } from '../../src/features/collections/fields/constraints/check-value.js';
import { constraintRow } from '../../src/features/collections/fields/constraints/constraint-rows.js';
import type { Field, FieldShape } from '../../src/features/collections/fields/field.js';
import { parseFieldSpec } from './field-spec.js';

/** The field as `name:Type[!][&][=default]`; null when no spec says exactly this field. */
export function presentFieldSpec(field: Field): string | null {
  const spec = writeField(field);
  try {
    return isDeepStrictEqual(parseFieldSpec(spec), field) ? spec : null;
  } catch {
    return null;
  }
}

function writeField(field: Field): string {
  const marks = [
    field.required ? '!' : '',
    field.unique ? '&' : '',
    field.default === undefined ? '' : `=${writeDefault(field.default)}`,
    field.stamp ? `=${field.stamp}` : '',
    field.nocase ? '@nocase' : '',
    field.fixed ? '@fixed' : '',
    field.hook ? '@hook' : '',
    field.hidden ? '@hidden' : '',
    field.read === undefined ? '' : `@read(${field.read})`,
    field.write === undefined ? '' : `@write(${field.write})`,
    field.protected ? '@protected' : '',
    field.public ? '@public' : '',
  ];
  return `${field.name}:${presentType(field)}${marks.join('')}`;
}

function writeDefault(value: string | number | boolean): string {
  return typeof value === 'string' && !/^[\w-]+$/.test(value) ? JSON.stringify(value) : String(value);
}

/** The type as a field spec writes it: `Array(Ref(users))`. */
export function presentType(shape: FieldShape): string {
  if (shape.type === 'Ref' && shape.ref) return `Ref(${shape.ref})${writeConstraints(shape)}`;
  if (shape.type === 'Array') {
    return `Array${shape.items ? `(${presentType(shape.items)})` : ''}${writeConstraints(shape)}`;
  }
  if (shape.type === 'Object' && shape.fields) return `Object{${shape.fields.map(writeField).join(',')}}`;
  return `${shape.type}${writeConstraints(shape)}`;
}

function writeConstraints(shape: FieldShape): string {
  const parts = namesOf(shape).map((name) => {
    const { written } = constraintRow(name);
    if (written === 'flag') return name;
    return `${name}:${[shape[name]].flat().map(writeSetting).join('|')}`;
  });
  return parts.length > 0 ? `{${parts.join(',')}}` : '';
}

function writeSetting(value: unknown): string {
  return typeof value === 'string' && !/^[^",|{}\s]+$/.test(value) ? JSON.stringify(value) : String(value);
}
