import type { SchemaObject } from 'ajv';
import { compileReader } from '../../../platform/schema/json-schema.js';
import type { Collection, CollectionMode, Rls } from '../collection.js';
import { FIELD_TYPES, type Field } from '../fields/field.js';

/**
 * A collection as a file or a request declares it: what it should be. Left out: enforced, no fields, no RLS, no
 * requested indexes.
 */
export interface CollectionDeclaration {
  name: string;
  mode?: CollectionMode;
  fields?: Field[];
  rls?: Rls | null;
  indexes?: string[];
}

export const SCHEMA_FORMAT = 'bsvc-schema/1' as const;

/** All collections of a project, as a file or a request declares them. */
export interface SchemaFile {
  format: typeof SCHEMA_FORMAT;
  collections: CollectionDeclaration[];
}

const SHAPE_PROPERTIES = {
  type: { enum: [...FIELD_TYPES] },
  ref: { type: 'string' },
  fields: { type: 'array', items: { $ref: '#/$defs/field' }, maxItems: 1000 },
  items: { $ref: '#/$defs/shape' },
};

export const MAX_INDEXES = 50;

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
      protected: { type: 'boolean' },
      public: { type: 'boolean' },
    },
  },
};

export const DECLARATION_SCHEMA: SchemaObject = {
  type: 'object',
  required: ['name'],
  additionalProperties: false,
  properties: {
    name: { type: 'string' },
    mode: { enum: ['enforced', 'flexible'] },
    fields: { type: 'array', items: { $ref: '#/$defs/field' }, maxItems: 1000 },
    rls: {
      type: ['object', 'null'],
      required: ['mode', 'ownerField'],
      additionalProperties: false,
      properties: { mode: { enum: ['public-read', 'private'] }, ownerField: { type: 'string' } },
    },
    indexes: { type: 'array', items: { type: 'string' }, maxItems: MAX_INDEXES },
  },
};

/**
 * Checks the form of declared collections; their rules are checked where they are used. 400 names the first place that
 * does not fit.
 */
export const readDeclarations = compileReader<CollectionDeclaration[]>({
  type: 'array',
  maxItems: 1000,
  items: DECLARATION_SCHEMA,
  $defs: FIELD_DEFS,
});

/** As readDeclarations, for one collection. */
export const readDeclaration = compileReader<CollectionDeclaration>({ ...DECLARATION_SCHEMA, $defs: FIELD_DEFS });

/** The declaration that would register this collection again. */
export function declareCollection({ name, mode, fields, rls, indexes }: Collection): Required<CollectionDeclaration> {
  return { name, mode, fields, rls, indexes };
}
