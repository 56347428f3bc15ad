import { invalid } from '../../../errors.js';
import { losesDigits } from '../../../exchange/csv-row.js';
import { findDate, isJsonObject } from '../../collections/fields/field-type.js';
import type { Field, FieldShape } from '../../collections/fields/field.js';

/** Reports that a field is stored as something else than it was, or left out. */
export type Note = (field: string, message: string) => void;

type Shape = Partial<Pick<FieldShape, 'type' | 'fields' | 'items'>>;

/**
 * Replaces the values of MongoDB's Extended JSON, versions 1 and 2, by those that a document may have: no field name
 * begins with `$`, so nothing else is meant by them. A value is returned as it is where it has none. Throws 400 for
 * values that have no form here; `note` is called for those that change.
 */
export function readExtendedJson(value: unknown, shape: Shape, note: Note, path = ''): unknown {
  if (Array.isArray(value)) {
    const items = value.map((item) => readExtendedJson(item, shape.items ?? {}, note, path));
    return items.some((item, at) => item !== value[at]) ? items : value;
  }
  if (!isJsonObject(value)) return value;
  const names = Object.keys(value);
  if (names.some((name) => READERS.has(name))) return readSpecial(value, shape, note, path);
  const entries = names.map((name): [string, unknown] => {
    const inner = shape.fields?.find((field) => field.name === name) ?? {};
    return [name, readExtendedJson(value[name], inner, note, path === '' ? name : `${path}.${name}`)];
  });
  return entries.some(([name, each]) => each !== value[name]) ? Object.fromEntries(entries) : value;
}

/** `readExtendedJson` for a document with declared fields. */
export function readExtendedDocument(
  fields: readonly Field[],
  document: Record<string, unknown>,
  note: Note,
): Record<string, unknown> {
  return readExtendedJson(document, { fields: [...fields] }, note) as Record<string, unknown>;
}

type Reader = (
  held: unknown,
  given: { value: Record<string, unknown>; shape: Shape; note: Note; path: string },
) => unknown;

const readNumber: Reader = (held, { shape, path }) => {
  const text = String(held);
  if (!/^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i.test(text)) {
    throw unkept(path, `${text} is no number that can be stored`);
  }
  if (!losesDigits(text)) return Number(text);
  if (shape.type === 'String' || shape.type === 'Ref') return text;
  throw unkept(path, `${text} has more digits than a Number holds: declare a String for it`);
};

const noForm: Reader = (_, { value, path }) => {
  throw unkept(path, `${Object.keys(value)[0]} of MongoDB has no form here`);
};

const readBinary: Reader = (held, { value, note, path }) => {
  const { base64, subType } = isJsonObject(held) ? held : { base64: held, subType: value['$type'] };
  if (subType === '04' || subType === '4') {
    const hex = Buffer.from(String(base64), 'base64').toString('hex');
    return hex.replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5');
  }
  note(path, 'binary data, stored as base64 text');
  return base64;
};

const READERS: ReadonlyMap<string, Reader> = new Map<string, Reader>([
  ['$oid', (held) => held],
  ['$uuid', (held) => held],
  ['$numberInt', readNumber],
  ['$numberLong', readNumber],
  ['$numberDouble', readNumber],
  ['$numberDecimal', readNumber],
  ['$date', (held, { path }) => readDate(held, path)],
  ['$binary', readBinary],
  [
    '$symbol',
    (held, { note, path }) => {
      note(path, 'a symbol, stored as text');
      return held;
    },
  ],
  [
    '$undefined',
    (_, { note, path }) => {
      note(path, 'undefined, stored as null');
      return null;
    },
  ],
  [
    '$ref',
    (held, { value, shape, note, path }) => {
      note(path, `a reference to ${String(held)}, stored as its id`);
      return readExtendedJson(value['$id'], shape, note, path);
    },
  ],
  ...['$timestamp', '$regularExpression', '$regex', '$code', '$minKey', '$maxKey', '$dbPointer'].map(
    (name): [string, Reader] => [name, noForm],
  ),
]);

function readSpecial(value: Record<string, unknown>, shape: Shape, note: Note, path: string): unknown {
  const name = Object.keys(value).find((each) => READERS.has(each))!;
  return READERS.get(name)!(value[name], { value, shape, note, path });
}

/** ISO text with any form of offset, or milliseconds since 1970. */
function readDate(held: unknown, path: string): string {
  const milliseconds = isJsonObject(held) ? held['$numberLong'] : held;
  const iso = typeof milliseconds === 'string' ? milliseconds.replace(/([+-]\d{2})(\d{2})$/, '$1:$2') : '';
  const found = findDate(iso);
  if (found) return found.toISOString();
  const date = new Date(typeof milliseconds === 'number' || /^-?\d+$/.test(iso) ? Number(milliseconds) : NaN);
  if (!(date.getUTCFullYear() >= 0 && date.getUTCFullYear() <= 9999)) {
    throw unkept(path, `${JSON.stringify(held)} is no date that can be stored`);
  }
  return date.toISOString();
}

const unkept = (path: string, message: string): Error =>
  invalid('VALIDATION_FAILED', path === '' ? message : `${path}: ${message}`);
