import type { Doc } from '../codec/document.js';
import { badValue, CODES, EngineError, refusal, typeMismatch } from '../errors.js';
import { type Collation, collationOf, LOCALES, type Strength } from '../query/collation/collation.js';
import { numberOf } from '../query/values/value.js';
import { showValue } from '../storage/catalog/duplicate-key.js';

/** The properties of a collation that this engine has in one form only, with the values that mean it. */
const FIXED: Readonly<Record<string, readonly unknown[]>> = {
  caseLevel: [false],
  caseFirst: ['off'],
  numericOrdering: [false],
  alternate: ['non-ignorable'],
  maxVariable: ['punct', 'space'],
  // Text is always taken apart before it is compared.
  normalization: [false, true],
  backwards: [false],
};

const MAX_STRENGTH = 3;

/**
 * The collation that a command or an index asks for, null for the simple one. Refuses, with MongoDB's code where it
 * refuses them too, unknown properties (40415), a missing locale (40414) and everything that would compare otherwise
 * than it was asked (2).
 */
export function readCollation(wanted: Doc, of: string): Collation | null {
  if (Object.keys(wanted).length === 0) return null;
  for (const name of Object.keys(wanted)) {
    if (name === 'locale' || name === 'strength' || name === 'version') continue;
    if (!Object.hasOwn(FIXED, name)) {
      throw new EngineError(CODES.IDLUnknownField, `BSON field '${of}.${name}' is an unknown field.`);
    }
    if (!FIXED[name]!.includes(wanted[name])) {
      throw badValue(`a collation with ${name} ${showValue(wanted[name])} is not supported by this engine`);
    }
  }
  const { locale } = wanted;
  if (locale === undefined || locale === null) {
    throw new EngineError(CODES.IDLFailedToParse, `BSON field '${of}.locale' is missing but a required field`);
  }
  if (typeof locale !== 'string') {
    throw typeMismatch(`BSON field '${of}.locale' is the wrong type, expected type 'string'`);
  }
  const strength = readStrength(wanted['strength'], of);
  if (locale === 'simple') return null;
  const known = LOCALES.find((name) => name === locale);
  if (known === undefined) {
    throw badValue(
      `the collation locale ${showValue(locale)} is not supported by this engine: only simple, ${LOCALES.join(', ')}`,
    );
  }
  return collationOf(known, strength);
}

function readStrength(value: unknown, of: string): Strength {
  if (value === undefined || value === null) return MAX_STRENGTH;
  const strength = numberOf(value);
  if (strength === null) throw typeMismatch(`BSON field '${of}.strength' is the wrong type, expected a number`);
  if (!Number.isInteger(strength) || strength < 1 || strength > 5) {
    throw refusal(
      51024,
      `BSON field '${of}.strength' value must be an integer from 1 to 5, actual value '${strength}'`,
    );
  }
  if (strength > MAX_STRENGTH) {
    throw badValue(`a collation of strength ${strength} is not supported by this engine: only 1, 2, 3`);
  }
  return strength as Strength;
}

/** A collation with all its properties, as `listIndexes` shows it. */
export function presentCollation({ locale, strength }: Pick<Collation, 'locale' | 'strength'>): Doc {
  return {
    locale,
    caseLevel: false,
    caseFirst: 'off',
    strength,
    numericOrdering: false,
    alternate: 'non-ignorable',
    maxVariable: 'punct',
    normalization: false,
    backwards: false,
    version: '57.1',
  };
}
