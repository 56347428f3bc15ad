import { invalid } from '../../../errors.js';
import type { Collection } from '../collection.js';
import { USERS } from '../users-collection.js';

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
