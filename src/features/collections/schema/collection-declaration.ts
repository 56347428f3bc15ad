import type { SchemaObject } from 'ajv';
import { compileCheck } from '../../../platform/schema/check-schema.js';
import { arrayOf, claimed, orNull, type Schema } from '../../../platform/schema/schema.js';
import { lifetime, presentDuration } from '../../../config/setting-readers.js';
import { invalid } from '../../../errors.js';
import {
  ACCESS_WORDS,
  type AccessRules,
  type AccessWord,
  type ChangesSetting,
  type Collection,
  type CollectionMode,
  type Rls,
} from '../collection.js';
import { CONSTRAINT_NAMES, constraintRow } from '../fields/constraints/constraint-rows.js';
import { FIELD_TYPES, hasRule, NAMED_MARKS, OWN_USER, type Field } from '../fields/field.js';
import { EXPIRE, type Expire } from '../fields/expire.js';
import { UNIQUES, type Unique } from '../fields/unique.js';
import { completeRules } from '../rules/check-rules.js';
import {
  accessWord,
  CLOSED_ACCESS,
  isServerOnly,
  PUBLIC_ACCESS,
  RULE_NAMES,
  type CollectionAccess,
} from '../rules/collection-rules.js';
import { USERS } from '../users-collection.js';

/**
 * A collection as a file or a request declares it. Anything it leaves out stays as it is; a new collection is then
 * enforced, for the secret key only and without requested indexes.
 */
export interface CollectionDeclaration {
  name: string;
  mode?: CollectionMode;
  fields?: Field[];
  access?: AccessWord;
  /** With `access` public-read or private; the present one, or userId, when left out. */
  ownerField?: string;
  /** Instead of `access`; `off` and null are the same: they disable row-level security that is there. */
  rls?: Rls | null | 'off';
  /** Instead of `access`; `off` and null are the same. Absent rules are `nobody`. */
  rules?: Partial<AccessRules> | null | 'server-only' | 'off';
  indexes?: string[];
  /** Fields that are unique together. */
  uniques?: Unique[];
  /** When documents go by themselves; null: never. */
  expire?: Expire | null;
  changes?: DeclaredChanges;
}

/** The keeping of changes for those who follow them, and for how long, such as `7d`. */
export interface DeclaredChanges {
  on?: boolean;
  keep?: string;
}

/** Everything that a declaration can say about a collection, as its record holds it. */
export interface WholeDeclaration
  extends Required<Pick<CollectionDeclaration, 'name' | 'mode' | 'fields' | 'indexes'>>, CollectionAccess {
  /** Left out where there are none. */
  uniques?: Unique[];
  /** Left out where none goes by itself. */
  expire?: Expire;
  /** Left out where everything is as the settings and the kind of database have it. */
  changes?: DeclaredChanges;
}

export const SCHEMA_FORMAT = 'bsvc-schema/1' as const;

const SHAPE_PROPERTIES = {
  type: { enum: [...FIELD_TYPES] },
  ref: { type: 'string' },
  fields: { type: 'array', items: { $ref: '#/$defs/field' }, maxItems: 1000 },
  items: { $ref: '#/$defs/shape' },
  ...Object.fromEntries(CONSTRAINT_NAMES.map((name) => [name, constraintRow(name).setting])),
};

export const MAX_DECLARED_INDEXES = 50;

/** Parts shared by every JSON Schema that contains fields; referred to as `#/$defs/field`. */
export const FIELD_DEFS: Record<string, SchemaObject> = {
  shape: { type: 'object', required: ['type'], additionalProperties: false, properties: SHAPE_PROPERTIES },
  field: {
    type: 'object',
    required: ['name', 'type'],
    additionalProperties: false,
    properties: {
      name: { type: 'string' },
      ...SHAPE_PROPERTIES,
      required: { type: 'boolean' },
      unique: { type: 'boolean' },
      default: { type: ['string', 'number', 'boolean'] },
      stamp: { const: OWN_USER },
      ...Object.fromEntries(NAMED_MARKS.map((mark) => [mark, { type: hasRule(mark) ? 'string' : 'boolean' }])),
    },
  },
};

export const DECLARATION_SCHEMA: Schema<CollectionDeclaration> = claimed({
  type: 'object',
  required: ['name'],
  additionalProperties: false,
  properties: {
    name: { type: 'string' },
    mode: { enum: ['enforced', 'flexible'] },
    fields: { type: 'array', items: { $ref: '#/$defs/field' }, maxItems: 1000 },
    access: { enum: [...ACCESS_WORDS] },
    ownerField: { type: 'string' },
    rls: {
      type: ['object', 'null', 'string'],
      pattern: '^off$',
      required: ['mode', 'ownerField'],
      additionalProperties: false,
      properties: { mode: { enum: ['public-read', 'private'] }, ownerField: { type: 'string' } },
    },
    rules: {
      type: ['object', 'null', 'string'],
      pattern: '^(off|server-only)$',
      minProperties: 1,
      additionalProperties: false,
      properties: Object.fromEntries(RULE_NAMES.map((name) => [name, { type: 'string' }])),
    },
    indexes: { type: 'array', items: { type: 'string' }, maxItems: MAX_DECLARED_INDEXES },
    uniques: UNIQUES,
    expire: orNull(EXPIRE),
    changes: {
      type: 'object',
      additionalProperties: false,
      minProperties: 1,
      properties: { on: { type: 'boolean' }, keep: { type: 'string', pattern: '^[1-9]\\d{0,4}(s|m|h|d)$' } },
    },
  },
});

/**
 * Checks the form of declared collections; their rules are checked where they are used. 400 names the first place that
 * does not fit.
 */
export const readDeclarations = compileCheck({
  ...arrayOf(DECLARATION_SCHEMA, { maxItems: 1000 }),
  $defs: FIELD_DEFS,
});

/** The settings of a collection that declarations are compared with. */
export function wholeDeclaration(collection: Collection): WholeDeclaration {
  const { name, mode, fields, rls, rules, isPublic, indexes, uniques, expire, changes } = collection;
  return {
    name,
    mode,
    fields,
    rls,
    ...(rules && { rules }),
    isPublic,
    indexes,
    ...(uniques?.length && { uniques }),
    ...(expire && { expire }),
    ...(changes && { changes: declareChanges(changes) }),
  };
}

/** The declaration that would register this collection again; it always says who may access it. */
export function declareCollection(collection: Collection): CollectionDeclaration {
  return writeDeclaration(wholeDeclaration(collection));
}

/** The settings as a declaration writes them. */
export function writeDeclaration({ rls, rules, isPublic, ...rest }: WholeDeclaration): CollectionDeclaration {
  const { name, mode, fields, ...others } = rest;
  const word = accessWord({ rls, rules, isPublic });
  const access = word === 'rules' ? { rules } : { access: word, ...(rls && { ownerField: rls.ownerField }) };
  return { name, mode, fields, ...(name !== USERS && access), ...others };
}

/** The setting as a declaration writes it, in one form whatever form it was declared in. */
export function declareChanges({ on, keepMs }: ChangesSetting): DeclaredChanges {
  return { ...(on !== undefined && { on }), ...(keepMs !== undefined && { keep: presentDuration(keepMs) }) };
}

/** The setting as a collection's record holds it. */
export function readDeclaredChanges({ on, keep }: DeclaredChanges): ChangesSetting {
  return { ...(on !== undefined && { on }), ...(keep !== undefined && { keepMs: lifetime(keep) }) };
}

/**
 * The access that a declaration leads to; the present one, itself, where it says nothing of it. `off` and null disable
 * what is there: a collection that had row-level security, or rules that admitted any caller, becomes public, any other
 * one stays as it is. 400 INVALID_RULES when access is declared twice.
 */
export function declaredAccess<T extends CollectionAccess>(
  { name, access, ownerField, rls, rules }: CollectionDeclaration,
  current: T,
): T | CollectionAccess {
  const isSet = (value: unknown): boolean => value !== undefined && value !== null && value !== 'off';
  if ([access, rls, rules].filter(isSet).length > 1) {
    throw invalid('INVALID_RULES', `"${name}" can have only one of access, row-level security and rules`);
  }
  if (ownerField !== undefined && access !== 'public-read' && access !== 'private') {
    throw invalid('INVALID_RULES', `"${name}": ownerField goes with the access public-read or private`);
  }
  if (access === 'public') return PUBLIC_ACCESS;
  if (access === 'server-only' || rules === 'server-only') return CLOSED_ACCESS;
  if (access) {
    const mode = access;
    return {
      rls: { mode, ownerField: ownerField ?? current.rls?.ownerField ?? 'userId' },
      rules: null,
      isPublic: false,
    };
  }
  if (rls && rls !== 'off') return { rls, rules: null, isPublic: false };
  if (rules && rules !== 'off') return { rls: null, rules: completeRules(rules), isPublic: false };
  const isDisabled = (rls !== undefined && current.rls) || (rules !== undefined && current.rules);
  return isDisabled && !isServerOnly(current) ? PUBLIC_ACCESS : current;
}
