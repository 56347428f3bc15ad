import { deserialize } from 'bson';

/** The `_id` of a stored document's bytes as text; ours are identifiers and come first. */
export function documentIdOf(row: Buffer): string {
  if (row[4] === 0x07 && row.toString('latin1', 5, 9) === '_id\0') return row.toString('hex', 9, 21);
  return String(deserialize(row)._id);
}
