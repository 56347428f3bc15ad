/** A document, or the fields of a change. */
export type Fields = Record<string, unknown>;

type Values = Record<string, never>;

/** One value as text: equal for values that are equal in JSON; a cleared field is a missing one. */
const textOf = (value: unknown): string => JSON.stringify(value ?? null);
export const isSame = (a: unknown, b: unknown): boolean => textOf(a) === textOf(b);

export const valueAt = (document: Fields | undefined, path: string): unknown =>
  path.split('.').reduce<unknown>((value, part) => (value as Fields | null | undefined)?.[part], document);

/** A document as the service will answer it after the change, as far as that can be known here. */
export function applyChange(document: Fields, changes: Fields): Fields {
  let changed = document;
  const put = (path: string, change: (before: never) => unknown): void => {
    changed = changedAt(changed, path.split('.'), change);
  };
  for (const [name, value] of Object.entries(changes)) {
    if (!name.startsWith('$')) put(name, () => value);
    else if (name === '$unset') (value as string[]).forEach((path) => put(path, () => null));
    else for (const [path, by] of Object.entries(value as Values)) put(path, (before) => OPERATORS[name]?.(before, by));
  }
  return changed;
}

/** A copy with another value at a path; none is left of what becomes undefined or null. */
function changedAt(
  holder: Fields,
  [part = '', ...rest]: readonly string[],
  change: (before: never) => unknown,
): Fields {
  // Own members only: a part may have the name of one that every object has.
  const before = Object.hasOwn(holder, part) ? holder[part] : undefined;
  const inner = before instanceof Object ? (before as Fields) : {};
  const after = rest.length > 0 ? changedAt(inner, rest, change) : change(before as never);
  const { [part]: _, ...others } = holder;
  const changed = after === undefined || after === null ? others : { ...holder, [part]: after };
  return Array.isArray(holder) ? (Object.values(changed) as never) : changed;
}

const listOf = (by: unknown, name: string): unknown[] => ((by as Fields | null)?.[name] as unknown[]) ?? [by];
const has = (list: readonly unknown[], value: unknown): boolean => list.some((each) => isSame(each, value));

interface Added {
  $position?: number;
  $slice?: number;
}

const OPERATORS: Readonly<Record<string, (before: never, by: never) => unknown>> = {
  $inc: (before: number | undefined, by: number) => (before ?? 0) + by,
  $mul: (before: number | undefined, by: number) => (before ?? 0) * by,
  // A missing number is neither less nor more.
  $min: (before: number, by: number) => (before < by ? before : by),
  $max: (before: number, by: number) => (before > by ? before : by),
  $push(before: unknown[] | undefined, by: Added | null) {
    const list = [...(before ?? [])];
    const { $position = list.length, $slice = Infinity } = by ?? {};
    list.splice($position, 0, ...listOf(by, '$each'));
    return $slice < 0 ? list.slice($slice) : list.slice(0, $slice);
  },
  $addToSet: (before: unknown[] | undefined, by: unknown) =>
    listOf(by, '$each').reduce<unknown[]>((list, each) => (has(list, each) ? list : [...list, each]), before ?? []),
  $pull: (before: unknown[] | undefined, by: unknown) => before?.filter((each) => !has(listOf(by, '$in'), each)),
};

/**
 * What is left of a change of `base` now that the document is `theirs`. A field that only this change has changed stays
 * in it; one that they changed too, to something else, is theirs and named in `lost`. Operators change whatever is
 * stored.
 */
export function mergeChange(mine: Fields, base: Fields, theirs: Fields): { left: Fields; lost: string[] } {
  const left: Fields = {};
  const lost: string[] = [];
  for (const [path, value] of Object.entries(mine)) {
    const now = valueAt(theirs, path);
    if (path.startsWith('$') || isSame(now, valueAt(base, path))) left[path] = value;
    else if (!isSame(now, value)) lost.push(path);
  }
  return { left, lost };
}
