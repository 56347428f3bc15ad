import { arrayOf, FLAG, ID, MOMENT, object, oneOf, TEXT, type Schema } from '../../http/route-description.js';
import { FIELD_DEFS } from './collection-declaration.js';

const RLS: Schema = {
  anyOf: [
    object({ enabled: { const: true }, mode: oneOf('public-read', 'private'), ownerField: TEXT }),
    object({ enabled: { const: false } }),
  ],
};

const FIELDS = {
  id: ID,
  name: TEXT,
  mode: oneOf('enforced', 'flexible'),
  fields: arrayOf({ $ref: '#/$defs/field' }),
  rls: RLS,
  indexes: arrayOf(TEXT),
  version: { type: 'integer' },
  createdAt: MOMENT,
  updatedAt: MOMENT,
};

/** What presentCollection answers. */
export const COLLECTION: Schema = { ...object(FIELDS, 'Collection'), $defs: FIELD_DEFS };

/** With `created`: whether this request made it. */
export const ADDED_COLLECTION: Schema = {
  ...object({ ...FIELDS, created: FLAG }, 'AddedCollection'),
  $defs: FIELD_DEFS,
};
