import { namesOf } from '../collections/fields/constraints/check-value.js';
import { constraintRow } from '../collections/fields/constraints/constraint-rows.js';
import type { Field, FieldShape } from '../collections/fields/field.js';
import { listSuffixes } from '../documents/query/filter-operators.js';
import { claimed, FLAG, ID, type JsonSchema, MOMENT, orNull, TEXT } from '../../platform/schema/schema.js';
import {
  changedFields,
  isAlwaysThere,
  publicFields,
  queriedFields,
  insertedFields,
  storedFields,
  describeConstraints,
  type DescribedCollection,
} from './described-project.js';

/** The JSON Schemas of a collection; each is titled, the name of the collection first. */
export interface CollectionSchemas {
  Document: JsonSchema;
  /** A document as reads answer it: parts may be left out, and Ref fields replaced by their documents. */
  Shown: JsonSchema;
  Insert: JsonSchema;
  Update: JsonSchema;
  /** Parameters of a list's query. */
  Filter: JsonSchema;
  /** `users` only. */
  Public?: JsonSchema;
}

/** Makes the schema of a Ref that may have been replaced; null where nothing can replace it. */
export type Populate = (collection: string) => JsonSchema | null;

const SUFFIXES = `Each field also with ${listSuffixes()}.`;

export function collectionSchemas(collection: DescribedCollection, populate: Populate): CollectionSchemas {
  const { typeName, isUsers, isFlexible, ownerField } = collection;
  const stored = storedFields(collection);
  const owner = (fields: readonly Field[]): Record<string, JsonSchema> =>
    ownerField !== null && !fields.some(({ name }) => name === ownerField)
      ? { [ownerField]: { ...TEXT, description: 'Id of the owner of the document.' } }
      : {};
  const system: Record<string, JsonSchema> = {
    ...(isUsers ? { emailVerified: FLAG } : { isDeleted: FLAG, deletedAt: orNull(MOMENT) }),
    createdAt: MOMENT,
    updatedAt: MOMENT,
  };
  const required = isFlexible ? [] : stored.filter(isAlwaysThere).map(({ name }) => name);
  const close = (title: string, schema: JsonSchema): JsonSchema => ({
    title: typeName + title,
    type: 'object',
    ...schema,
    additionalProperties: isFlexible,
  });
  const sent = insertedFields(collection);
  const sentRequired = isFlexible ? [] : namesOfRequired(sent);
  return {
    Document: close('Document', {
      required: ['_id', ...required, ...Object.keys(system)],
      properties: { _id: ID, ...propertiesOf(stored), ...owner(stored), ...system },
    }),
    Shown: close('Shown', {
      required: ['_id'],
      properties: { _id: ID, ...propertiesOf(stored, populate), ...owner(stored), ...system },
    }),
    Insert: close('Insert', {
      ...(sentRequired.length > 0 && { required: sentRequired }),
      properties: { ...propertiesOf(sent), ...owner(sent) },
    }),
    Update: close('Update', { minProperties: 1, ...changesOf(changedFields(collection), isFlexible) }),
    Filter: {
      title: `${typeName}Filter`,
      description: SUFFIXES,
      type: 'object',
      properties: {
        _id: ID,
        ...filtersOf(stored, ''),
        ...owner(stored),
        createdAt: MOMENT,
        updatedAt: MOMENT,
      },
      additionalProperties: true,
    },
    ...(isUsers && {
      Public: close('Public', {
        required: ['_id'],
        properties: { _id: ID, ...propertiesOf(publicFields(collection)) },
      }),
    }),
  };
}

const namesOfRequired = (fields: readonly Field[]): string[] =>
  fields.filter((field) => field.required).map(({ name }) => name);

function propertiesOf(fields: readonly Field[], populate?: Populate): Record<string, JsonSchema> {
  return Object.fromEntries(fields.map((field) => [field.name, schemaOfField(field, populate)]));
}

/**
 * Defaults stand in the description alone: of a new document generators take the keyword for a promise that the value
 * is always there.
 */
function schemaOfField(field: Field, populate?: Populate): JsonSchema {
  const description = describeConstraints(field);
  return {
    ...schemaOf(field, populate),
    ...(description !== '' && { description }),
  };
}

function schemaOf(shape: FieldShape, populate?: Populate): JsonSchema {
  const keywords = namesOf(shape).map((name) => constraintRow(name).keywords?.(shape[name], shape.type));
  return Object.assign(schemaOfType(shape, populate), ...keywords) as JsonSchema;
}

function schemaOfType(shape: FieldShape, populate?: Populate): JsonSchema {
  switch (shape.type) {
    case 'String':
      return { type: 'string' };
    case 'Number':
      return { type: 'number' };
    case 'Boolean':
      return { type: 'boolean' };
    case 'Date':
      return { type: 'string', format: 'date-time' };
    case 'Ref': {
      const id: JsonSchema = { type: 'string', pattern: '^[0-9a-fA-F]{24}$' };
      const populated = shape.ref === undefined ? null : (populate?.(shape.ref) ?? null);
      return populated ? { anyOf: [id, populated] } : id;
    }
    case 'Array':
      return { type: 'array', items: shape.items ? schemaOf(shape.items, populate) : {} };
    case 'Object': {
      if (!shape.fields) return { type: 'object', additionalProperties: true };
      const required = namesOfRequired(shape.fields);
      return {
        type: 'object',
        ...(required.length > 0 && { required }),
        properties: propertiesOf(shape.fields, populate),
        additionalProperties: false,
      };
    }
  }
}

/** Fields that can change, those inside objects by a dotted name too; null sets one back, or takes it out. */
function changesOf(fields: readonly Field[], allOptional: boolean): JsonSchema {
  const properties: Record<string, JsonSchema> = {};
  const patternProperties: Record<string, JsonSchema> = {};
  const visit = (level: readonly Field[], prefix: string): void => {
    for (const field of level) {
      const path = prefix + field.name;
      const schema = schemaOfField(field);
      properties[path] = field.required && !allOptional ? schema : orNull(claimed(schema));
      if (field.type === 'Object' && field.fields) visit(field.fields, `${path}.`);
      else if (field.type === 'Object') patternProperties[`^${escapePattern(path)}\\.`] = {};
    }
  };
  visit(fields, '');
  Object.assign(properties, operatorsOf(fields, allOptional));
  return { properties, ...(Object.keys(patternProperties).length > 0 && { patternProperties }) };
}

/** The update operators, each with the paths that it fits. */
function operatorsOf(fields: readonly Field[], isOpen: boolean): Record<string, JsonSchema> {
  const numbers: Record<string, JsonSchema> = {};
  const ordered: Record<string, JsonSchema> = {};
  const lists: Record<string, { each: JsonSchema; item: JsonSchema }> = {};
  const cleared: string[] = [];
  const visit = (level: readonly Field[], prefix: string): void => {
    for (const field of level) {
      const path = prefix + field.name;
      if (field.type === 'Number') numbers[path] = { type: 'number' };
      if (['Number', 'String', 'Date'].includes(field.type)) ordered[path] = schemaOfType(field);
      if (field.type === 'Array') {
        const item = field.items ? schemaOf(field.items) : {};
        lists[path] = { item, each: { type: 'array', items: item, maxItems: 1000 } };
      }
      if (!field.required || isOpen) cleared.push(path);
      if (field.type === 'Object') visit(field.fields ?? [], `${path}.`);
    }
  };
  visit(fields, '');
  const operator = (properties: Record<string, JsonSchema>): JsonSchema => ({
    type: 'object',
    properties,
    additionalProperties: isOpen || fields.some(({ type, fields: inner }) => type === 'Object' && !inner),
  });
  const listOperator = (modifiers: (each: JsonSchema) => Record<string, JsonSchema>, needed: string): JsonSchema =>
    operator(
      Object.fromEntries(
        Object.entries(lists).map(([path, { item, each }]) => {
          const many = { type: 'object', required: [needed], properties: modifiers(each), additionalProperties: false };
          return [path, { anyOf: [item, many] }];
        }),
      ),
    );
  return {
    $inc: operator(numbers),
    $mul: operator(numbers),
    $min: operator(ordered),
    $max: operator(ordered),
    $push: listOperator(($each) => ({ $each, $slice: { type: 'integer' }, $position: { type: 'integer' } }), '$each'),
    $addToSet: listOperator(($each) => ({ $each }), '$each'),
    $pull: listOperator(($in) => ({ $in }), '$in'),
    $unset: { type: 'array', items: isOpen || cleared.length === 0 ? { type: 'string' } : { enum: cleared } },
  };
}

const escapePattern = (text: string): string => text.replace(/[.*+?^${}()|[\]\\/-]/g, '\\$&');

function filtersOf(fields: readonly Field[], prefix: string): Record<string, JsonSchema> {
  const schemas = queriedFields(fields, prefix).map((field) => filtersAt(field, prefix + field.name));
  return Object.assign({}, ...schemas) as Record<string, JsonSchema>;
}

function filtersAt(shape: FieldShape, path: string): Record<string, JsonSchema> {
  if (shape.type === 'Array') return shape.items ? filtersAt(shape.items, path) : { [path]: {} };
  return shape.type === 'Object' ? filtersOf(shape.fields ?? [], `${path}.`) : { [path]: schemaOfType(shape) };
}
