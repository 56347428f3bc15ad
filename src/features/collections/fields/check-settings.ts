import { invalid } from '../../../errors.js';
import type { Collection } from '../collection.js';
import { KEPT_FIELDS, UNSAFE_NAMES } from './field.js';
import { USERS } from '../users-collection.js';

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

/** Moments that the service keeps of every document. */
const KEPT_MOMENTS: ReadonlySet<string> = new Set(['createdAt', 'updatedAt']);

/** 400 INVALID_EXPIRE unless every document that is stored can have a moment there, and is not gone at once. */
export function checkExpire({
  name,
  mode,
  fields,
  expire,
}: Pick<Collection, 'name' | 'mode' | 'fields' | 'expire'>): void {
  if (!expire) return;
  const { field, after } = expire;
  if (name === USERS) throw refusal('Users do not expire: delete their accounts');
  if (KEPT_MOMENTS.has(field)) {
    if (after === undefined) throw refusal(`Documents cannot expire at their ${field}: say after, such as 30d`);
    return;
  }
  const type = fields.find((declared) => declared.name === field)?.type;
  if (type !== 'Date' || mode !== 'enforced') {
    throw refusal(`Documents cannot expire by "${field}": name createdAt, updatedAt, or a declared field of type Date`);
  }
}

function refusal(message: string): Error {
  return invalid('INVALID_EXPIRE', message.slice(0, 300));
}
