import { bsonType, isDocument } from '../../codec/document.js';
import { type Strength, textKey } from './text-key.js';

export type { Strength } from './text-key.js';

/** The locales whose order is Unicode's root collation without changes. */
export const LOCALES = ['en', 'en_US'] as const;
export type Locale = (typeof LOCALES)[number];

/** How text is compared where it is not by its code points. Null stands for the simple collation everywhere. */
export interface Collation {
  readonly locale: Locale;
  readonly strength: Strength;
  /**
   * The value with each text in it replaced by its key, so that comparing two such values compares the originals. To be
   * applied once.
   */
  fold(value: unknown): unknown;
}

const collations = new Map<string, Collation>();

/** The one collation of these properties: two are the same when they are identical. */
export function collationOf(locale: Locale, strength: Strength): Collation {
  const name = `${locale} ${String(strength)}`;
  let collation = collations.get(name);
  if (collation === undefined) {
    collation = { locale, strength, fold: (value) => foldValue(value, strength) };
    collations.set(name, collation);
  }
  return collation;
}

function foldValue(value: unknown, strength: Strength): unknown {
  if (typeof value === 'string') return textKey(value, strength);
  if (typeof value !== 'object' || value === null) return value;
  if (Array.isArray(value)) return value.map((item) => foldValue(item, strength));
  if (isDocument(value)) {
    return Object.fromEntries(
      Object.keys(value).map((name): [string, unknown] => [name, foldValue(value[name], strength)]),
    );
  }
  return isSymbol(value) ? textKey(value.value, strength) : value;
}

/** True if the comparison of anything with this value may depend on the collation. */
export function holdsText(value: unknown): boolean {
  if (typeof value === 'string') return true;
  if (typeof value !== 'object' || value === null) return false;
  if (Array.isArray(value)) return value.some(holdsText);
  if (isDocument(value)) return Object.values(value).some(holdsText);
  return isSymbol(value);
}

function isSymbol(value: object): value is { value: string } {
  return bsonType(value) === 'BSONSymbol';
}
