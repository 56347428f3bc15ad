import { createHash } from 'node:crypto';
import { ObjectId } from 'bson';
import type { Field, FieldShape } from '../../../src/features/collections/fields/field.js';
import { isJsonObject, findDate } from '../../../src/features/collections/fields/field-type.js';
import { findObjectId } from '../../../src/platform/ids.js';

const MOMENT = /^(\d{4}-\d{2}-\d{2})[T ](\d{2}:\d{2})(:\d{2}(?:\.\d+)?)?(Z|[+-]\d{2}(?::?\d{2})?)?$/i;

/**
 * The moment that text of another service names, as ISO 8601 to the millisecond; undefined for other text. PocketBase
 * and PostgreSQL write a space for the T, PostgreSQL an offset of hours alone, and none for `timestamp`: that is UTC.
 */
export function findForeignTime(text: unknown): string | undefined {
  if (typeof text !== 'string') return undefined;
  const [, day, time, seconds = ':00', zone = 'Z'] = MOMENT.exec(text) ?? [];
  const offset = zone.replace(/^(.\d\d):?(\d\d)?$/, (_, hours: string, minutes = '00') => `${hours}:${minutes}`);
  return findDate(day === undefined ? text : `${day}T${time}${seconds}${offset}`)?.toISOString();
}

/**
 * The id here of what has another id in another service: the first 12 bytes of its SHA-256; 24 hexadecimal digits stay.
 * It depends on nothing else, so references find what they name whichever file is imported first, and an import that is
 * repeated finds what it stored.
 */
export function foreignId(id: string): ObjectId {
  return findObjectId(id) ?? new ObjectId(createHash('sha256').update(id).digest().subarray(0, 12));
}

/** The document with the ids of another service in its Ref fields as the ids here, and its dates as they are taken. */
export function withOwnValues(fields: readonly Field[], document: Record<string, unknown>): Record<string, unknown> {
  const own = { ...document };
  for (const field of fields) {
    if (Object.hasOwn(own, field.name)) own[field.name] = withOwnValue(field, own[field.name]);
  }
  return own;
}

function withOwnValue(shape: FieldShape, value: unknown): unknown {
  // Keys are numbers in many databases.
  const isKey = (typeof value === 'string' && value !== '') || typeof value === 'number';
  if (shape.type === 'Ref' && isKey) return foreignId(String(value)).toHexString();
  if (shape.type === 'Date') return findForeignTime(value) ?? value;
  if (shape.fields && isJsonObject(value)) return withOwnValues(shape.fields, value);
  if (shape.items && Array.isArray(value)) return value.map((item) => withOwnValue(shape.items!, item));
  return value;
}
