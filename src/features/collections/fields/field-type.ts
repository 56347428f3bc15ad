import { findDate } from './find-date.js';
import type { FieldType } from './field.js';

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

/**
 * False for a text with half a surrogate pair, which has no UTF-8 form: stored, it would silently become another
 * character.
 */
export function isWellFormed(text: string): boolean {
  return (text as string & { isWellFormed(): boolean }).isWellFormed();
}
