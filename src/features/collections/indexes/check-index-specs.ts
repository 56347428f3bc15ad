import { invalid } from '../../../errors.js';
import type { Collection } from '../collection.js';
import { MAX_STORED_INDEXES, placesField, requiredIndexes } from './document-indexes.js';
import { HIDDEN_FIELD, UNSAFE_NAMES, type Field } from '../fields/field.js';
import { FIELD_TYPE_RULES } from '../fields/field-type.js';
import type { UniqueParts } from '../../../exchange/unique-text.js';
import { readUnique, writeUnique } from '../fields/unique.js';

const MAX_UNIQUES = 10;
const MAX_TOGETHER = 4;

/**
 * 400 INVALID_UNIQUE unless each names two to four declared fields whose values can be unique, one where it has a
 * condition, and each is there once.
 */
function checkUniques({ uniques = [], fields, rls }: Pick<Collection, 'uniques' | 'fields' | 'rls'>): void {
  if (uniques.length > MAX_UNIQUES) throw refusal(`A collection has at most ${MAX_UNIQUES} lists of unique fields`);
  for (const unique of uniques) {
    const { fields: names, where } = readUnique(unique);
    const text = writeUnique(unique);
    const isConditional = !Array.isArray(unique);
    if (isConditional) requireCondition(text, where, fields);
    if (names.length < (isConditional ? 1 : 2) || names.length > MAX_TOGETHER || new Set(names).size < names.length) {
      throw refusal(`"${text}" must name two to ${MAX_TOGETHER} fields, as board,user`);
    }
    for (const name of names) {
      const declared = fields.find((field) => field.name === name);
      const type = declared?.type ?? (name === rls?.ownerField ? 'String' : null);
      if (type === null || name.includes(',')) throw refusal(`"${text}" names "${name}", which is no declared field`);
      if (!FIELD_TYPE_RULES[type].canBeUnique) throw refusal(`"${name}" cannot be unique: it is of type ${type}`);
    }
  }
  const asked = uniques.map(readUnique).map(({ fields: names, where }) => JSON.stringify([[...names].sort(), where]));
  if (new Set(asked).size < asked.length) {
    throw refusal('The same fields are asked to be unique twice');
  }
}

/** A condition compares fields with values that they can have. */
function requireCondition(text: string, where: UniqueParts['where'], fields: readonly Field[]): void {
  const conditions = Object.entries(where);
  if (conditions.length === 0 || conditions.length > MAX_TOGETHER) {
    throw refusal(`"${text}" must have one to ${MAX_TOGETHER} conditions, as where status=booked`);
  }
  for (const [name, value] of conditions) {
    const type = fields.find((field) => field.name === name)?.type;
    if (type === undefined) throw refusal(`"${text}" names "${name}", which is no declared field`);
    if (!COMPARED.has(type) || FIELD_TYPE_RULES[type].store(value) !== value) {
      throw refusal(`"${text}" compares "${name}", of type ${type}, with ${JSON.stringify(value)}`);
    }
  }
}

/** Types whose values a condition can name. */
const COMPARED: ReadonlySet<Field['type']> = new Set(['String', 'Number', 'Boolean', 'Ref']);

function refusal(message: string): Error {
  return invalid('INVALID_UNIQUE', message.length > 300 ? `${message.slice(0, 300)}…` : message);
}

const MAX_REQUESTED_INDEXES = 20;
const MAX_PARTS = 4;
const PART = /^-?[A-Za-z_][\w-]*(\.[A-Za-z_][\w-]*)*$/;

/**
 * 400 unless all lists of unique fields are sound (checkUniques), and every requested index is `field`, `field,-other`
 * or `field:2dsphere` over fields the collection can have.
 */
export function checkIndexSpecs(collection: Pick<Collection, 'mode' | 'fields' | 'indexes' | 'rls' | 'uniques'>): void {
  checkUniques(collection);
  if (collection.indexes.length > MAX_REQUESTED_INDEXES) {
    throw invalid('INVALID_INDEX', `A collection has at most ${MAX_REQUESTED_INDEXES} requested indexes`);
  }
  if (new Set(collection.indexes).size < collection.indexes.length) {
    throw invalid('INVALID_INDEX', 'The same index is requested twice');
  }
  for (const spec of collection.indexes) {
    const place = placesField(spec);
    const parts = (place ?? spec).split(',');
    const names = parts.map((part) => part.replace(/^-/, ''));
    if (
      parts.length > (place === null ? MAX_PARTS : 1) ||
      !parts.every((part) => PART.test(part)) ||
      new Set(names).size < names.length
    ) {
      throw invalid(
        'INVALID_INDEX',
        `"${spec}" is not an index: write field, up to ${MAX_PARTS} as field,-other (- for descending), or field:2dsphere for places`,
      );
    }
    for (const name of names) requireKnown(collection, name);
    if (place !== null) requirePlaces(collection, place);
  }
  const count = requiredIndexes(collection).length;
  if (count > MAX_STORED_INDEXES) {
    const text = `Unique fields and requested indexes need ${count} indexes; a collection has at most ${MAX_STORED_INDEXES}`;
    throw invalid('INVALID_INDEX', text);
  }
}

/** The types of declared fields that a point fits into. */
const PLACE_TYPES: ReadonlySet<string> = new Set(['Object', 'Array']);

function requirePlaces({ fields, rls }: Pick<Collection, 'fields' | 'rls'>, path: string): void {
  const [top, ...inner] = path.split('.') as [string];
  const declared = fields.find((field) => field.name === top);
  const fits = declared === undefined ? !NO_PLACES.has(top) && rls?.ownerField !== top : PLACE_TYPES.has(declared.type);
  if (!fits || path.startsWith('-')) {
    const text = `"${path}" cannot hold places: declare it as Object or Array, such as place:Object or place:Array(Number)`;
    throw invalid('INVALID_INDEX', inner.length > 0 ? text.replace(path, top) : text);
  }
}

const NO_PLACES: ReadonlySet<string> = new Set(['_id', 'createdAt', 'updatedAt']);

/** Fields that no list can filter or sort by. */
const UNFIT: ReadonlySet<string> = new Set(['isDeleted', 'deletedAt', HIDDEN_FIELD]);

function requireKnown(collection: Pick<Collection, 'mode' | 'fields' | 'rls'>, name: string): void {
  const parts = name.split('.');
  const top = parts[0]!;
  const known =
    collection.mode === 'flexible' ||
    ['_id', 'createdAt', 'updatedAt', collection.rls?.ownerField].includes(top) ||
    collection.fields.some((field) => field.name === top);
  if (!known || UNFIT.has(top) || parts.some((part) => UNSAFE_NAMES.has(part))) {
    throw invalid('INVALID_INDEX', `The collection has no field "${name}" to index`);
  }
}
