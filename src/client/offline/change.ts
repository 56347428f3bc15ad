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
  const changed = structuredClone(document);
  const put = (path: string, change: (before: never) => unknown): void => {
    const parts = path.split('.');
    const last = parts.pop()!;
    // Own members only: a part may have the name of one that every object has.
    const parent = parts.reduce((holder, part) => {
      if (typeof holder[part] !== 'object' || !Object.hasOwn(holder, part)) define(holder, part, {});
      return (holder[part] ?? define(holder, part, {})) as Fields;
    }, changed);
    const after = change((Object.hasOwn(parent, last) ? parent[last] : undefined) as never);
    if (after === undefined || after === null) delete parent[last];
    else define(parent, last, after);
  };
  for (const [name, value] of Object.entries(changes)) {
    if (!name.startsWith('$')) put(name, () => value);
    else if (name === '$unset') (value as string[]).forEach((path) => put(path, () => null));
    else for (const [path, by] of Object.entries(value as Values)) put(path, (before) => OPERATORS[name]?.(before, by));
  }
  return changed;
}

/** Also `__proto__`, which an assignment would take for something else. */
function define(holder: Fields, name: string, value: unknown): unknown {
  Object.defineProperty(holder, name, { value, writable: true, enumerable: true, configurable: true });
  return value;
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
