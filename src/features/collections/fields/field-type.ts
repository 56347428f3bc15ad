import type { FieldType } from './field.js';

const DATE = /^(\d{4})-(\d{2})-(\d{2})(?:T(\d{2}):(\d{2}):(\d{2})(\.\d+)?(Z|[+-]\d{2}:\d{2}))?$/;
const ISO_CHARACTERS = '2026-12-01T09:30:00.000Z'.length;
const DAYS_IN_MONTH = [31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];

/**
 * The moment that an RFC 3339 date-time (with offset) or a `YYYY-MM-DD` date (midnight UTC) names, or null for any
 * other text and for days that no calendar has. Fractions are cut to milliseconds; years outside 0000-9999 after the
 * offset are refused, since they could not be answered in the same form.
 */
export function findDate(text: string): Date | null {
  if (text.length === ISO_CHARACTERS) {
    // As `toISOString` gives it, which is what programs send.
    const date = new Date(text);
    if (!Number.isNaN(date.getTime()) && date.toISOString() === text) return date;
  }
  const match = DATE.exec(text.length > 64 ? '' : text.toUpperCase());
  if (!match) return null;
  const [, year, month, day, hour, minute, second, fraction, offset] = match;
  if (!isCalendarDay(Number(year), Number(month), Number(day))) return null;
  if (hour === undefined) return new Date(`${year}-${month}-${day}T00:00:00Z`);
  if (Number(hour) > 23 || Number(minute) > 59 || Number(second) > 59) return null;
  if (offset !== 'Z' && (Number(offset!.slice(1, 3)) > 23 || Number(offset!.slice(4)) > 59)) return null;
  const milliseconds = (fraction ?? '.').slice(1, 4).padEnd(3, '0');
  const date = new Date(`${year}-${month}-${day}T${hour}:${minute}:${second}.${milliseconds}${offset}`);
  return date.getUTCFullYear() >= 0 && date.getUTCFullYear() <= 9999 ? date : null;
}

function isCalendarDay(year: number, month: number, day: number): boolean {
  const leap = (year % 4 === 0 && year % 100 !== 0) || year % 400 === 0;
  const days = month === 2 && leap ? 29 : DAYS_IN_MONTH[month - 1];
  return days !== undefined && day >= 1 && day <= days;
}

/** The rule of a field type: the values it accepts and their stored form. */
export interface FieldTypeRule {
  /**
   * The stored form of a JSON value, or undefined when the value is not of the type (rest-api.md 2.3: nothing is
   * coerced).
   */
  store: (value: unknown) => unknown;
  /** True if a field of the type can have a default (rest-api.md 2.4). */
  canDefault: boolean;
  /**
   * True if a field of the type can be unique: arrays and objects have no single value that another document could
   * share.
   */
  canBeUnique: boolean;
}

const REF = /^[0-9a-fA-F]{24}$/;

/** The seven types of rest-api.md 2.3, one row each. */
export const FIELD_TYPE_RULES: Readonly<Record<FieldType, FieldTypeRule>> = {
  String: {
    store: (value) => (typeof value === 'string' ? value : undefined),
    canDefault: true,
    canBeUnique: true,
  },
  Number: {
    store: (value) => (typeof value === 'number' && Number.isFinite(value) ? value : undefined),
    canDefault: true,
    canBeUnique: true,
  },
  Boolean: {
    store: (value) => (typeof value === 'boolean' ? value : undefined),
    canDefault: true,
    canBeUnique: true,
  },
  Date: {
    store: (value) => (typeof value === 'string' ? (findDate(value) ?? undefined) : undefined),
    canDefault: false,
    canBeUnique: true,
  },
  Object: {
    store: (value) => (isJsonObject(value) ? value : undefined),
    canDefault: false,
    canBeUnique: false,
  },
  Array: {
    store: (value) => (Array.isArray(value) ? value : undefined),
    canDefault: false,
    canBeUnique: false,
  },
  Ref: {
    store: (value) => (typeof value === 'string' && REF.test(value) ? value : undefined),
    canDefault: false,
    canBeUnique: true,
  },
};

/** True for what JSON calls an object: not null, not an array. */
export function isJsonObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** No list, no date, no id. */
export function isFieldsObject(value: unknown): value is Record<string, unknown> {
  if (!isJsonObject(value)) return false;
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === Object.prototype || prototype === null;
}

/**
 * False for a text with half a surrogate pair, which has no UTF-8 form: stored, it would silently become another
 * character.
 */
export function isWellFormed(text: string): boolean {
  return (text as string & { isWellFormed(): boolean }).isWellFormed();
}
