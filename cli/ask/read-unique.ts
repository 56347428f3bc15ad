import type { Unique } from '../../src/features/collections/fields/unique.js';
import { UsageError } from '../view/exit.js';

const VALUE = /^(?:"(?:[^"\\]|\\.)*"|true|false|-?\d+(?:\.\d+)?)$/;

/** Reads `board,user` or `staff,at where status=booked`; a text with special characters stands in quotes. */
export function readUniqueOption(text: string): Unique {
  const [names, condition, ...more] = text.split(' where ') as [string, string?, ...string[]];
  const fields = splitNames(names);
  if (condition === undefined) return fields;
  if (more.length > 0) throw notRead(text);
  const where = splitNames(condition).map((each): [string, string | number | boolean] => {
    const [, name, value] = /^([^=\s]+)=(.+)$/.exec(each) ?? [];
    if (name === undefined || value === undefined) throw notRead(text);
    return [name, VALUE.test(value) ? (JSON.parse(value) as string | number | boolean) : value];
  });
  return { fields, where: Object.fromEntries(where) };
}

const splitNames = (text: string): string[] => text.split(',').map((name) => name.trim());

function notRead(text: string): UsageError {
  return new UsageError(`"${text}" is no unique: write fields, as board,user, or staff,at where status=booked.`);
}
