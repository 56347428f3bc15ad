/** A text of JSON as a value, or why it is none. */
export function readJson(text: string): { value: unknown; problem: string | null } {
  try {
    return { value: JSON.parse(text) as unknown, problem: null };
  } catch (error) {
    return { value: undefined, problem: `This is not JSON: ${(error as Error).message}` };
  }
}

/** The same for a JSON object; `problem` is what the page shows for any other value. */
export function readJsonObject(
  text: string,
  problem: string,
): { fields: Record<string, unknown>; problem: null } | { fields: null; problem: string } {
  const read = readJson(text);
  if (read.problem !== null) return { fields: null, problem: read.problem };
  const isObject = typeof read.value === 'object' && read.value !== null && !Array.isArray(read.value);
  return isObject ? { fields: read.value as Record<string, unknown>, problem: null } : { fields: null, problem };
}

export const isSameJson = (one: unknown, other: unknown): boolean => JSON.stringify(one) === JSON.stringify(other);

/** The entries that differ from those before. */
export const changedEntries = <Values extends object>(before: object, after: Values): Partial<Values> =>
  Object.fromEntries(
    Object.entries(after).filter(([name, value]) => !isSameJson(value, before[name as keyof object])),
  ) as Partial<Values>;

/** The same, with null for an entry that is gone. */
export function differences(before: Record<string, unknown>, after: Record<string, unknown>): Record<string, unknown> {
  const gone = Object.keys(before).filter((name) => !Object.hasOwn(after, name));
  return { ...changedEntries(before, after), ...Object.fromEntries(gone.map((name) => [name, null])) };
}
