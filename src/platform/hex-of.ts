import type { ObjectId } from 'bson';

const known = new WeakMap<ObjectId, string>();

/** The text of an id that many requests ask for, such as that of a project: made once for each object. */
export function hexOf(id: ObjectId): string {
  let hex = known.get(id);
  if (hex === undefined) known.set(id, (hex = id.toHexString()));
  return hex;
}
