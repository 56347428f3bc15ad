import { FLAG, object, TEXT, arrayOf } from '../../../platform/schema/schema.js';
import type { Collection } from '../collection.js';

/** The shape in which the hosted service's SDK reads a collection. */
export const MODEL = object(
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
