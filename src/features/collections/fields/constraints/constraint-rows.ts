import { isDeepStrictEqual } from 'node:util';
import type { JsonSchema } from '../../../../platform/schema/schema.js';
import type { FieldType } from '../field.js';
import { findDate } from '../field-type.js';
import {
  NOW,
  ON_DELETE,
  TEXT_FORMATS,
  type ConstraintName,
  type Constraints,
  type OnDelete,
  type TextFormat,
} from './constraint.js';
import { isEmailAddress } from '../../../../platform/schema/text-forms.js';
import { RE2JS } from 're2js';

const MAX_PATTERN_CHARACTERS = 500;
/** Instructions of a compiled pattern: what matching one character may cost at worst. */
const MAX_PATTERN_SIZE = 1000;
const MAX_REMEMBERED = 500;

interface FieldPattern {
  test: (text: string) => boolean;
  size: number;
}

const known = new Map<string, FieldPattern>();

/** A pattern that patternProblem finds no fault with, ready to match in time linear in the text. */
function compileFieldPattern(pattern: string): FieldPattern {
  let compiled = known.get(pattern);
  if (!compiled) {
    const read = RE2JS.compile(pattern);
    compiled = { test: (text) => read.test(text), size: read.programSize() };
    if (known.size >= MAX_REMEMBERED) known.clear();
    known.set(pattern, compiled);
  }
  return compiled;
}

/** Why a text cannot be the pattern of a field; null = it can. */
function patternProblem(pattern: string): string | null {
  if (pattern.length > MAX_PATTERN_CHARACTERS) return `must have at most ${MAX_PATTERN_CHARACTERS} characters`;
  try {
    return RE2JS.compile(pattern).programSize() > MAX_PATTERN_SIZE
      ? 'repeats too much: shorten its {counts}, or use maxLength'
      : null;
  } catch {
    return 'is not a usable pattern: check its brackets and escapes; look-around and back-references are not supported';
  }
}

const MAX_URL_CHARACTERS = 2048;

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i;
const WEB = /^https?:\/\//i;

function isWebAddress(text: string): boolean {
  return text.length <= MAX_URL_CHARACTERS && WEB.test(text) && !/\s/.test(text) && URL.canParse(text);
}

/** The form that a text may be asked for, as a test and in words. `keyword` is what JSON Schema calls it. */
const FORMAT_RULES: Readonly<Record<TextFormat, { test: (text: string) => boolean; about: string; keyword: string }>> =
  {
    email: { test: isEmailAddress, about: 'an e-mail address', keyword: 'email' },
    url: { test: isWebAddress, about: 'a web address (http or https)', keyword: 'uri' },
    uuid: { test: (text) => UUID.test(text), about: 'a UUID', keyword: 'uuid' },
  };

/** What a check of one value may know: the moment of the write, null for what is stored already. */
export interface CheckTime {
  now: number | null;
  /** Takes steps of pattern matching from what one document may cost; false when that is used up. */
  afford: (steps: number) => boolean;
}

/** A constraint: what it is set to, and what that makes of values. The rest of a sentence follows the field's path. */
export interface ConstraintRow<S = unknown> {
  types: readonly FieldType[];
  /** How a field spec writes what it is set to; a `flag` is written by its name alone. */
  written: 'count' | 'flag' | 'text' | 'bound' | 'list' | 'names';
  /** The form of what it is set to, as JSON. */
  setting: JsonSchema;
  /** Why it cannot be set to this for a field of the type; null = it can. */
  problem?(this: void, setting: S, type: FieldType): string | null;
  /** True if whatever fits `setting` fits `other` too; equal settings always do. */
  implies?(this: void, setting: S, other: S, type: FieldType): boolean;
  /** The stored form of a value. */
  normalize?(this: void, value: unknown): unknown;
  /** What is wrong with a value of the type; null = it fits. Made once for a setting. */
  check?(this: void, setting: S, type: FieldType): (value: unknown, at: CheckTime) => string | null;
  /** What JSON Schema says of the values. */
  keywords?(this: void, setting: S, type: FieldType): JsonSchema;
  /** What the type cannot say, for people. */
  about(this: void, setting: S): string;
}

type Rows = { readonly [Name in ConstraintName]-?: ConstraintRow<NonNullable<Constraints[Name]>> };

/** Most fields that a document has in common with one that it refers to. */
const MAX_SAME = 4;

const COUNT: JsonSchema = { type: 'integer', minimum: 0, maximum: 1_000_000_000 };
const FLAG: JsonSchema = { const: true };
const MAX_ENUM = 100;
const MAX_ENUM_CHARACTERS = 200;

const characters = (count: number): string => `${count} ${count === 1 ? 'character' : 'characters'}`;
const items = (count: number): string => `${count} ${count === 1 ? 'item' : 'items'}`;

/** Code points, as JSON Schema counts; most texts are not looked at. */
function isLongerThan(text: unknown, count: number): boolean {
  const { length } = text as string;
  return length > count && (length > count * 2 || [...(text as string)].length > count);
}

/** A bound as the number that values are compared by; null where it is not judged. */
function boundOf(setting: number | string, type: FieldType, now: number | null): number | null {
  if (type === 'Number') return setting as number;
  return setting === NOW ? now : findDate(setting as string)!.getTime();
}

function boundProblem(setting: number | string, type: FieldType): string | null {
  if (type === 'Number') return Number.isFinite(setting) ? null : 'must be a number';
  const isMoment = typeof setting === 'string' && (setting === NOW || findDate(setting) !== null);
  return isMoment ? null : 'must be a date such as 2024-12-31 or 2024-12-31T12:00:00Z, or now';
}

const bound = (name: 'min' | 'max', keyword: string, sign: 1 | -1): ConstraintRow<number | string> => ({
  types: ['Number', 'Date'],
  written: 'bound',
  setting: { type: ['number', 'string'] },
  problem: boundProblem,
  implies(setting, other, type) {
    if (setting === NOW || other === NOW) return setting === other;
    return sign * boundOf(setting, type, null)! >= sign * boundOf(other, type, null)!;
  },
  check:
    (setting, type) =>
    (value, { now }) => {
      const limit = boundOf(setting, type, now);
      const word = sign === 1 ? 'at least' : 'at most';
      if (limit === null || sign * Number(value) >= sign * limit) return null;
      if (type === 'Number') return `must be ${word} ${setting}`;
      const moment = setting === NOW ? 'the moment of the write' : setting;
      return `must be ${sign === 1 ? 'no earlier' : 'no later'} than ${moment}`;
    },
  keywords: (setting, type) => (type === 'Number' ? { [keyword]: setting } : {}),
  about: (setting) => `${sign === 1 ? 'At least' : 'At most'} ${setting}`,
});

const DELETION_TEXTS: Readonly<Record<OnDelete, string>> = {
  restrict: 'The document it names cannot be removed',
  unset: 'Cleared when the document it names goes',
  trash: 'Trashed with the document it names',
  remove: 'Removed for good when the document it names goes',
};

/** Every constraint of writes.md 2, and what writes.md 3 says of references. */
const CONSTRAINTS: Rows = {
  trim: {
    types: ['String'],
    written: 'flag',
    setting: FLAG,
    normalize: (value) => (value as string).trim(),
    about: () => 'White space around it is taken off',
  },
  lowercase: {
    types: ['String'],
    written: 'flag',
    setting: FLAG,
    normalize: (value) => (value as string).toLowerCase(),
    about: () => 'Stored in lower case',
  },
  minLength: {
    types: ['String'],
    written: 'count',
    setting: COUNT,
    implies: (setting, other) => setting >= other,
    check: (setting) => (value) =>
      setting > 0 && !isLongerThan(value, setting - 1) ? `must have at least ${characters(setting)}` : null,
    keywords: (minLength) => ({ minLength }),
    about: (setting) => `At least ${characters(setting)}`,
  },
  maxLength: {
    types: ['String'],
    written: 'count',
    setting: COUNT,
    implies: (setting, other) => setting <= other,
    check: (setting) => (value) => (isLongerThan(value, setting) ? `must have at most ${characters(setting)}` : null),
    keywords: (maxLength) => ({ maxLength }),
    about: (setting) => `At most ${characters(setting)}`,
  },
  pattern: {
    types: ['String'],
    written: 'text',
    setting: { type: 'string', minLength: 1 },
    problem: patternProblem,
    check: (setting) => {
      const { test, size } = compileFieldPattern(setting);
      return (value, { afford }) => {
        const text = value as string;
        if (!afford(text.length * size)) return 'has too much text for its pattern: send less at once';
        return test(text) ? null : `must match ${setting}`;
      };
    },
    keywords: (pattern) => (isScriptPattern(pattern) ? { pattern } : {}),
    about: (setting) => `Matches ${setting}`,
  },
  format: {
    types: ['String'],
    written: 'text',
    setting: { enum: [...TEXT_FORMATS] },
    check: (setting) => (value) =>
      FORMAT_RULES[setting].test(value as string) ? null : `must be ${FORMAT_RULES[setting].about}`,
    keywords: (setting) => ({ format: FORMAT_RULES[setting].keyword }),
    about: (setting) => FORMAT_RULES[setting].about.replace(/^an? /, 'Is $&'),
  },
  min: bound('min', 'minimum', 1),
  max: bound('max', 'maximum', -1),
  integer: {
    types: ['Number'],
    written: 'flag',
    setting: FLAG,
    check: () => (value) => (Number.isInteger(value) ? null : 'must be a whole number'),
    keywords: () => ({ type: 'integer' }),
    about: () => 'A whole number',
  },
  enum: {
    types: ['String', 'Number'],
    written: 'list',
    setting: { type: 'array', items: { type: ['string', 'number'] }, minItems: 1, maxItems: MAX_ENUM },
    problem(setting, type) {
      const wanted = type === 'Number' ? 'number' : 'string';
      if (setting.length === 0 || setting.length > MAX_ENUM) return `must list 1 to ${MAX_ENUM} values`;
      if (setting.some((value) => typeof value !== wanted)) return `must list values of type ${type}`;
      if (setting.some((value) => typeof value === 'string' && value.length > MAX_ENUM_CHARACTERS)) {
        return `must list values of at most ${MAX_ENUM_CHARACTERS} characters`;
      }
      return new Set(setting).size < setting.length ? 'lists a value twice' : null;
    },
    implies: (setting, other) => setting.every((value) => other.includes(value)),
    check(setting) {
      const known = new Set<unknown>(setting);
      return (value) => (known.has(value) ? null : `must be one of ${listed(setting)}`);
    },
    keywords: (values) => ({ enum: [...values] }),
    about: (setting) => `One of ${listed(setting)}`,
  },
  minItems: {
    types: ['Array'],
    written: 'count',
    setting: COUNT,
    implies: (setting, other) => setting >= other,
    check: (setting) => (value) =>
      (value as unknown[]).length < setting ? `must have at least ${items(setting)}` : null,
    keywords: (minItems) => ({ minItems }),
    about: (setting) => `At least ${items(setting)}`,
  },
  maxItems: {
    types: ['Array'],
    written: 'count',
    setting: COUNT,
    implies: (setting, other) => setting <= other,
    check: (setting) => (value) =>
      (value as unknown[]).length > setting ? `must have at most ${items(setting)}` : null,
    keywords: (maxItems) => ({ maxItems }),
    about: (setting) => `At most ${items(setting)}`,
  },
  uniqueItems: {
    types: ['Array'],
    written: 'flag',
    setting: FLAG,
    check: () => (value) => (hasRepeated(value as unknown[]) ? 'must not have the same item twice' : null),
    keywords: () => ({ uniqueItems: true }),
    about: () => 'No item twice',
  },
  check: {
    types: ['Ref'],
    written: 'flag',
    setting: FLAG,
    // Identifiers are compared as they are written.
    normalize: (value) => (value as string).toLowerCase(),
    about: () => 'The id of a document that is there',
  },
  onDelete: {
    types: ['Ref'],
    written: 'text',
    setting: { enum: [...ON_DELETE] },
    problem: (setting) => (ON_DELETE.includes(setting) ? null : `must be one of ${ON_DELETE.join(', ')}`),
    about: (setting) => DELETION_TEXTS[setting],
  },
  same: {
    types: ['Ref'],
    written: 'names',
    setting: { type: 'array', items: { type: 'string' }, minItems: 1, maxItems: MAX_SAME },
    problem(setting) {
      if (setting.length === 0 || setting.length > MAX_SAME) return `must list 1 to ${MAX_SAME} fields`;
      return new Set(setting).size < setting.length ? 'lists a field twice' : null;
    },
    about: (setting) => `Of a document with the same ${listed(setting)}`,
  },
};

export const CONSTRAINT_NAMES = Object.keys(CONSTRAINTS) as ConstraintName[];

/** The row of a constraint whose setting is read by its name. */
export function constraintRow(name: ConstraintName): ConstraintRow {
  return CONSTRAINTS[name];
}

/** True if whatever fits the setting of a constraint fits the other one too. */
export function isAsTight(name: ConstraintName, type: FieldType, setting: unknown, other: unknown): boolean {
  if (isDeepStrictEqual(setting, other)) return true;
  return constraintRow(name).implies?.(setting, other, type) ?? false;
}

function listed(values: readonly (string | number)[]): string {
  const shown = values.slice(0, 20).join(', ');
  return values.length > 20 ? `${shown}, …` : shown;
}

/** By what the database calls equal: the order of keys counts. */
function hasRepeated(values: readonly unknown[]): boolean {
  const seen = new Set(values.map((value) => JSON.stringify(value)));
  return seen.size < values.length;
}

/** True for a pattern that JavaScript reads as well, which is what JSON Schema means by one. */
function isScriptPattern(pattern: string): boolean {
  try {
    return new RegExp(pattern, 'u') instanceof RegExp;
  } catch {
    return false;
  }
}
