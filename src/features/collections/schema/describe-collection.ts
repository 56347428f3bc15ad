import {
  anyOf,
  arrayOf,
  claimed,
  FLAG,
  ID,
  integer,
  MOMENT,
  object,
  oneOf,
  orNull,
  type Schema,
  TEXT,
  WHOLE,
} from '../../../platform/schema/schema.js';
import { ACCESS_WORDS, type Collection } from '../collection.js';
import { FIELD_DEFS } from './collection-declaration.js';
import type { Field } from '../fields/field.js';
import { EXPIRE } from '../fields/expire.js';
import { UNIQUES } from '../fields/unique.js';

/** The shape in which the hosted service's SDK reads a collection. */
const MODEL = object(
  { name: TEXT, model: arrayOf(object({ key: TEXT, type: TEXT, required: FLAG, unique: FLAG, 'ref?': TEXT })) },
  'CollectionModel',
);

/** A collection as the hosted service's SDK reads it: its own name for every field. */
export function presentModel({ name, fields }: Pick<Collection, 'name' | 'fields'>) {
  return {
    name,
    model: fields.map((field) => ({
      key: field.name,
      type: field.type,
      required: field.required === true,
      unique: field.unique === true,
      ...(field.ref !== undefined && { ref: field.ref }),
    })),
  };
}

const RLS = anyOf(
  object({ enabled: oneOf(true), mode: oneOf('public-read', 'private'), ownerField: TEXT }),
  object({ enabled: oneOf(false) }),
);

/** Rules as a collection shows them. */
const RULES = object({ read: TEXT, create: TEXT, update: TEXT, delete: TEXT, 'updateTo?': TEXT });

/** A field, by its definition among those that withFieldDefs adds. */
const FIELD: Schema<Field> = claimed({ $ref: '#/$defs/field' });

/** The change log of a collection; null if it is off or not yet used. */
export const CHANGE_LOG_SIZE = orNull(
  object({
    bytes: WHOLE,
    maxBytes: { ...WHOLE, description: 'Beyond this size, the oldest changes are removed.' },
    since: orNull(MOMENT),
  }),
);

const SHOWN = {
  id: ID,
  name: TEXT,
  mode: oneOf('enforced', 'flexible'),
  fields: arrayOf(FIELD),
  access: oneOf(...ACCESS_WORDS, 'rules'),
  rls: RLS,
  'rules?': RULES,
  indexes: arrayOf(TEXT),
  'uniques?': UNIQUES,
  'expire?': EXPIRE,
  'changes?': object({ 'on?': FLAG, 'keepMs?': WHOLE }),
  version: integer(),
  createdAt: MOMENT,
  updatedAt: MOMENT,
};

export const COLLECTION = withFieldDefs(object(SHOWN, 'Collection'));

/** As COLLECTION, in a list that may tell sizes. */
export const LISTED_COLLECTION = withFieldDefs(
  object(
    {
      ...SHOWN,
      'size?': {
        ...object({ documents: WHOLE, bytes: WHOLE }),
        description: 'Includes documents in the trash.',
      },
    },
    'ListedCollection',
  ),
);

/** As COLLECTION, with what is kept of its changes. */
export const MEASURED_COLLECTION = withFieldDefs(object({ ...SHOWN, log: CHANGE_LOG_SIZE }, 'MeasuredCollection'));

/** As COLLECTION, and once more as the hosted service’s SDK reads it. */
export const SCHEMA_OF_COLLECTION = withFieldDefs(object({ ...SHOWN, collection: MODEL }, 'CollectionSchema'));

/** A collection, and whether this request registered it. */
export const ADDED_COLLECTION = withFieldDefs(object({ ...SHOWN, created: FLAG }, 'AddedCollection'));

/** Fields as a body lists them; its schema needs withFieldDefs. */
export const FIELD_LIST = arrayOf(FIELD, { maxItems: 1000 });

/** The schema with the definitions that its fields refer to. */
export function withFieldDefs<T>(schema: Schema<T>): Schema<T> {
  return { ...schema, $defs: FIELD_DEFS };
}
