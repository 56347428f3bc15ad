/** Fields that are unique together, among the documents that hold some values. */
export interface UniqueParts {
  fields: string[];
  where: Record<string, string | number | boolean>;
}

const VALUE = /^(?:"(?:[^"\\]|\\.)*"|true|false|-?\d+(?:\.\d+)?)$/;
const WORD = /^[A-Za-z_][\w-]*$/;

/** A unique as people write it: `board,user` or `staff,at where status=booked`. */
export function writeUniqueText({ fields, where }: UniqueParts): string {
  const conditions = Object.entries(where).map(([name, value]) => `${name}=${writeValue(value)}`);
  return fields.join() + (conditions.length > 0 ? ` where ${conditions.join()}` : '');
}

function writeValue(value: string | number | boolean): string {
  const isPlain = typeof value === 'string' && WORD.test(value) && value !== 'true' && value !== 'false';
  return isPlain ? value : JSON.stringify(value);
}

/** Reads what writeUniqueText writes; null for anything else. A text with special characters stands in quotes. */
export function readUniqueText(text: string): UniqueParts | null {
  const [names, condition, ...more] = text.split(' where ') as [string, string?, ...string[]];
  const fields = splitNames(names);
  if (condition === undefined) return { fields, where: {} };
  const where: [string, string | number | boolean][] = [];
  for (const each of splitNames(condition)) {
    const [, name, value] = /^([^=\s]+)=(.+)$/.exec(each) ?? [];
    if (name === undefined || value === undefined || more.length > 0) return null;
    where.push([name, VALUE.test(value) ? (JSON.parse(value) as string | number | boolean) : value]);
  }
  return { fields, where: Object.fromEntries(where) };
}

const splitNames = (text: string): string[] => text.split(',').map((name) => name.trim());
