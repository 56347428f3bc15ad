import { readUniqueText } from '../../src/exchange/unique-text.js';
import type { Unique } from '../../src/features/collections/fields/unique.js';
import { UsageError } from '../view/exit.js';

/** Reads `board,user` or `staff,at where status=booked`. */
export function readUniqueOption(text: string): Unique {
  const read = readUniqueText(text);
  if (!read) {
    throw new UsageError(`"${text}" is no unique: write fields, as board,user, or staff,at where status=booked.`);
  }
  return Object.keys(read.where).length > 0 ? read : read.fields;
}
