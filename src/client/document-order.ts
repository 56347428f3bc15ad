/** The path of a sort key. */
export const pathOf = (name: string): string => name.replace(/^-/, '');

/** Documents as the service sorts them: by one field after the other, then by id in the direction of the last. */
export function inOrder<T extends object>(documents: readonly T[], sort: readonly string[]): T[] {
  const last = sort.at(-1)?.startsWith('-') ? '-_id' : '_id';
  const fields = [...sort, last].map((name) => ({
    path: pathOf(name).split('.'),
    sign: name.startsWith('-') ? -1 : 1,
  }));
  return documents
    .map((document) => ({ document, keys: fields.map(({ path, sign }) => keyOf(document, path, sign)) }))
    .sort((a, b) => {
      for (const [at, { sign }] of fields.entries()) {
        const order = compare(a.keys[at], b.keys[at]) * sign;
        if (order !== 0) return order;
      }
      return 0;
    })
    .map(({ document }) => document);
}

/** Of an empty list: it comes before everything. */
const EMPTY = Symbol('empty');

/** The value that counts: of a list the smallest one, or where it descends the largest. */
const keyOf = (document: object, path: readonly string[], sign: number): unknown =>
  valuesAt(document, path)
    // A populated document is sorted by its id.
    .map((value) => (value as { _id?: unknown } | null)?._id ?? value)
    .reduce((a, b) => (compare(a, b) * sign > 0 ? b : a));

/** Every value at a path, lists looked through; where there is none it counts as null. */
function valuesAt(value: unknown, path: readonly string[]): unknown[] {
  const [part, ...rest] = path;
  if (part === undefined) return Array.isArray(value) ? (value.length > 0 ? value : [EMPTY]) : [value ?? null];
  if (!Array.isArray(value)) return valuesAt((value as Record<string, unknown> | null | undefined)?.[part], rest);
  return value.length > 0 ? value.flatMap((item) => (Array.isArray(item) ? [null] : valuesAt(item, path))) : [null];
}

/** Kinds of values follow each other; a missing one is null. */
function rankOf(value: unknown): number {
  if (value === EMPTY) return -1;
  if (value === null) return 0;
  return Array.isArray(value) ? 4 : ['number', 'string', 'object', 'list', 'boolean'].indexOf(typeof value) + 1;
}

function compare(a: unknown, b: unknown): number {
  const order = rankOf(a) - rankOf(b);
  if (order !== 0) return order;
  if (typeof a === 'string') return compareTexts(a, b as string);
  if (typeof a !== 'object' || a === null) return a === b ? 0 : Number(a) - Number(b);
  return compareEntries(Object.entries(a), Object.entries(b as object));
}

/** Entry by entry: kind of value, name, value; what ends first comes first. */
function compareEntries(a: readonly [string, unknown][], b: readonly [string, unknown][]): number {
  for (const [at, [name, value]] of a.entries()) {
    if (at >= b.length) return 1;
    const [otherName, other] = b[at]!;
    const order = rankOf(value) - rankOf(other) || compareTexts(name, otherName) || compare(value, other);
    if (order !== 0) return order;
  }
  return a.length - b.length;
}

/** By characters, not by the halves that JavaScript makes of those beyond the first plane. */
function compareTexts(a: string, b: string): number {
  if (a === b) return 0;
  const length = Math.min(a.length, b.length);
  for (let at = 0; at < length; at++) {
    const order = placeOf(a.charCodeAt(at)) - placeOf(b.charCodeAt(at));
    if (order !== 0) return order;
  }
  return a.length - b.length;
}

const placeOf = (unit: number): number => (unit >= 0xd800 && unit < 0xe000 ? unit + 0x10000 : unit);
