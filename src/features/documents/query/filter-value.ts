import type { ObjectId } from 'bson';
import { foldText } from '../../collections/fields/nocase.js';
import { findDate } from '../../collections/fields/field-type.js';
import type { Field, FieldShape, FieldType } from '../../collections/fields/field.js';
import { findObjectId } from '../../../platform/ids.js';
import type { PathTarget } from '../store/find-field.js';
import { badQuery, quoted } from '../reply/query-text.js';

/** A value that a text of a query can stand for: never an object, an array or a pattern. */
export type Scalar = string | number | boolean | null | Date | ObjectId;

const JSON_NUMBER = /^-?(0|[1-9]\d*)(\.\d+)?([eE][+-]?\d+)?$/;

const TYPED_READERS: Readonly<Record<FieldType, ((text: string) => Scalar | undefined) | null>> = {
  String: (text) => text,
  Number: (text) => findNumber(text),
  Boolean: (text) => (text === 'true' ? true : text === 'false' ? false : undefined),
  Date: (text) => findDate(text) ?? findPrintedDate(text),
  Ref: (text) => (findObjectId(text) ? text : undefined),
  Object: null,
  Array: null,
};

const FORMS: Readonly<Record<FieldType, string>> = {
  String: 'a text',
  Number: 'a number',
  Boolean: 'true or false',
  Date: 'a date such as 2026-01-31 or 2026-01-31T12:00:00Z',
  Ref: 'an identifier of 24 hexadecimal digits',
  Object: 'an object',
  Array: 'an array',
};

/**
 * The stored values that a text may stand for: one where the schema says the type, else the text itself and whatever it
 * reads as (decisions.md 4). 400 when it cannot be a value of the declared type. `parameter` names the culprit in the
 * message.
 */
export function readValues(target: PathTarget, text: string, parameter: string): Scalar[] {
  if (target.kind === 'id') {
    const id = findObjectId(text);
    if (!id) throw badQuery(`${parameter} must be an identifier of 24 hexadecimal digits, not ${quoted(text)}`);
    return [id];
  }
  const shape = target.kind === 'declared' && target.firm ? scalarShape(target.shape) : null;
  return shape ? [readTyped(shape.type, isNocase(target) ? foldText(text) : text, parameter)] : readUntyped(text);
}

/** True for a field that is compared by its folded value. */
export function isNocase(target: PathTarget): boolean {
  return target.kind === 'declared' && target.firm && (target.shape as Partial<Field>).nocase === true;
}

/** readValues, with `null` for a value that is not there. A String field takes the word literally. */
export function readValuesOrNull(target: PathTarget, text: string, parameter: string): Scalar[] {
  const nullable =
    target.kind === 'declared' && target.firm && scalarShape(target.shape)?.type !== 'String' && text === 'null';
  return nullable ? [null] : readValues(target, text, parameter);
}

/**
 * The declared type of one value at a path, looking through arrays as the database does; null where nothing declares
 * it.
 */
export function scalarShape(shape: FieldShape): FieldShape | null {
  if (shape.type === 'Array') return shape.items ? scalarShape(shape.items) : null;
  return shape;
}

function readTyped(type: FieldType, text: string, parameter: string): Scalar {
  const read = TYPED_READERS[type];
  if (!read) throw badQuery(`${parameter} is an ${type}: filter by one of the fields inside it`);
  const value = read(text);
  if (value === undefined) throw badQuery(`${parameter} must be ${FORMS[type]}, not ${quoted(text)}`);
  return value;
}

function readUntyped(text: string): Scalar[] {
  if (text === 'null') return [null, text];
  if (text === 'true' || text === 'false') return [text === 'true', text];
  const number = findNumber(text);
  if (number !== undefined) return [number, text];
  const date = findDate(text);
  return date ? [text, date] : [text];
}

/** A JavaScript date put into a text, as the hosted service's SDK sends it: `Thu Jan 01 1970 00:00:00 GMT+0000 (…)`. */
const PRINTED_DATE = /^[A-Z][a-z]{2} [A-Z][a-z]{2} \d{2} \d{4} \d{2}:\d{2}:\d{2} GMT[+-]\d{4}(?: \([^()]{1,64}\))?$/;

function findPrintedDate(text: string): Date | undefined {
  if (!PRINTED_DATE.test(text)) return undefined;
  const date = new Date(text);
  return Number.isNaN(date.getTime()) ? undefined : date;
}

function findNumber(text: string): number | undefined {
  if (!JSON_NUMBER.test(text)) return undefined;
  const number = Number(text);
  return Number.isFinite(number) ? number : undefined;
}
