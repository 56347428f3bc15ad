import { writeUniqueText, type UniqueParts } from '../../../exchange/unique-text.js';
import { anyOf, arrayOf, FLAG, mapOf, number, object, TEXT, type Schema } from '../../../platform/schema/schema.js';

/** Fields that are unique together: among all documents that have them, or those alone that hold some values. */
export type Unique = string[] | UniqueParts;

const FIELDS = arrayOf(TEXT, { maxItems: 10 });
const WHERE = mapOf(anyOf(TEXT, number(), FLAG));

/** As declarations and requests write them. */
export const UNIQUES: Schema<Unique[]> = arrayOf(anyOf(FIELDS, object({ fields: FIELDS, where: WHERE })), {
  maxItems: 20,
});

/** The two parts of a unique; one without a condition has an empty one. */
export function readUnique(unique: Unique): UniqueParts {
  return Array.isArray(unique) ? { fields: unique, where: {} } : unique;
}

/** A unique as it is written at the command line: `staff,at where status=booked`. */
export function writeUnique(unique: Unique): string {
  return writeUniqueText(readUnique(unique));
}
