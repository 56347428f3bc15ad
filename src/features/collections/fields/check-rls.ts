import { invalid } from '../../../errors.js';
import type { Collection } from '../collection.js';
import { KEPT_FIELDS, UNSAFE_NAMES } from './field.js';

const FIELD_NAME = /^[A-Za-z_][\w-]{0,63}$/;

/** 400 unless the owner field can hold a user's id: a plain name, and a String or Ref where the schema declares it. */
export function checkRls(collection: Pick<Collection, 'rls' | 'fields'>): void {
  if (!collection.rls) return;
  const { ownerField, mode } = collection.rls;
  if (mode !== 'public-read' && mode !== 'private') {
    throw invalid('INVALID_BODY', 'The RLS mode must be public-read or private');
  }
  if (!FIELD_NAME.test(ownerField) || UNSAFE_NAMES.has(ownerField) || KEPT_FIELDS.includes(ownerField)) {
    throw invalid('INVALID_BODY', `"${ownerField}" cannot be the owner field: choose a plain name such as userId`);
  }
  const declared = collection.fields.find((field) => field.name === ownerField);
  if (declared && declared.type !== 'String' && declared.type !== 'Ref') {
    throw invalid('INVALID_BODY', `The owner field ${ownerField} must be a String or a Ref, not ${declared.type}`);
  }
}
