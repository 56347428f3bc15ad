/** Grows a JSON value to about so many characters in one measure. */
export type Grow = (characters: number) => string;

const list = (item: string, characters: number): string =>
  `[${`${item},`.repeat(Math.max(1, Math.floor(characters / (item.length + 1)))).slice(0, -1)}]`;
const nested = (levels: number): string => '['.repeat(levels) + ']'.repeat(levels);

/** Each makes one measure of a body as large as it can be; none knows what a route does with it. */
export const OPERATORS: Readonly<Record<string, Grow>> = {
  'small numbers': (characters) => list('1', characters),
  'long numbers': (characters) => list('1.7976931348623157e308', characters),
  'empty lists': (characters) => list('[]', characters),
  'empty objects': (characters) => list('{}', characters),
  'deep lists': (characters) => list(nested(26), characters),
  'small objects': (characters) => list('{"a":1}', characters),
  'short texts': (characters) => list('"a"', characters),
  // Another one each time.
  'one text': (characters) => `"{n}${'a'.repeat(characters)}"`,
  'escaped text': (characters) => `"${'\\u00e9'.repeat(characters / 6)}"`,
  'many keys': (characters) => {
    const keys = Array.from({ length: Math.floor(characters / 14) }, (_, at) => `"k${at}":{}`);
    return `{${keys.join(',')}}`;
  },
  'keys by group': (characters) => {
    const keys = Array.from({ length: 100 }, (_, at) => `"k${at}":1`).join(',');
    return list(`{${keys}}`, characters);
  },
};

/** The places of an example that can be grown: its members, all of it, and one that it does not have. */
export function placesOf(example: unknown): string[] {
  if (Array.isArray(example)) return ['all', 'first'];
  return typeof example === 'object' && example !== null ? [...Object.keys(example), 'new'] : ['all'];
}

/** The JSON of an example, one place of it grown. */
export function growAt(example: unknown, place: string, grown: string): string {
  if (Array.isArray(example)) {
    const first = (): string => growAt(example[0], placesOf(example[0])[0]!, grown);
    return place === 'first' ? `[${first()}]` : grown;
  }
  if (typeof example !== 'object' || example === null) return grown;
  const members = Object.entries(example).map(
    ([name, value]) => `${JSON.stringify(name)}:${name === place ? grown : JSON.stringify(value)}`,
  );
  return `{${[...members, ...(place === 'new' ? [`"grown":${grown}`] : [])].join(',')}}`;
}

const times = <T>(count: number, make: (at: number) => T): T[] =>
  Array.from({ length: Math.max(1, count) }, (_, at) => make(at));
const joined = (characters: number, make: (at: number) => string, by: string): string => {
  const parts: string[] = [];
  for (let at = 0, length = 0; length < characters; at++) {
    parts.push(make(at));
    length += parts[at]!.length + by.length;
  }
  return parts.join(by);
};

/** Each makes one measure of the query of a list as large as it can be. */
export const QUERIES: Readonly<Record<string, (characters: number) => string>> = {
  conditions: (characters) => joined(characters, (at) => `f${at}_gt=${at}`, '&'),
  'listed values': (characters) => `title_in=${joined(characters, String, ',')}`,
  patterns: (characters) => joined(characters, (at) => `f${at}_regex=a.{0,30}b`, '&'),
  'one pattern': (characters) => `title_regex=${joined(characters, () => '(a|b)', '')}`,
  'slow pattern': (characters) => `title_regex=h.{0,${Math.min(999, characters)}}z%24&limit=1`,
  fields: (characters) => `fields=${joined(characters, (at) => `f${at}`, ',')}`,
  'deep fields': (characters) => `fields=${joined(characters, () => 'a', '.')}`,
  sorts: (characters) => `sort=${joined(characters, (at) => `f${at}`, ',')}`,
  populates: (characters) => `populate=${joined(characters, (at) => `f${at}`, ',')}`,
  'a deep page': (characters) => `limit=1000&page=${characters}&count=true`,
  'unknown parameters': (characters) => joined(characters, (at) => `${at}`, '&'),
  'the same again': (characters) => joined(characters, () => 'a=1', '&'),
  'a long cursor': (characters) => `cursor=${'a'.repeat(characters)}&since=${'b'.repeat(characters)}`,
};

/** Each makes one measure of a pipeline as large as it can be. */
export const PIPELINES: Readonly<Record<string, (characters: number) => unknown[]>> = {
  stages: (characters) => times(characters / 20, (at) => ({ $match: { a: at } })),
  branches: (characters) => [{ $match: { $or: times(characters / 9, (at) => ({ a: at })) } }],
  'nested branches': (characters) => [
    times(Math.min(40, characters / 10), (at) => at).reduce<unknown>((inner) => ({ $match: { $or: [inner] } }), {
      a: 1,
    }),
  ],
  'listed values': (characters) => [{ $match: { a: { $in: times(characters / 6, (at) => at) } } }],
  patterns: (characters) => [{ $match: { $or: times(characters / 30, (at) => ({ a: { $regex: `^x${at}.*y$` } })) } }],
  'cases of a switch': (characters) => {
    const branches = times(characters / 40, (at) => ({ case: { $eq: ['$a', at] }, then: at }));
    return [{ $project: { r: { $switch: { branches, default: 0 } } } }];
  },
  operations: (characters) => [{ $project: { r: { $add: times(characters / 3, () => 1) } } }],
  'long ranges': (characters) => [
    {
      $project: {
        r: { $reduce: { input: { $range: [0, characters] }, initialValue: 0, in: { $add: ['$$value', 1] } } },
      },
    },
  ],
  joins: (characters) =>
    times(characters / 90, (at) => ({ $lookup: { from: 'posts', localField: 'a', foreignField: 'b', as: `j${at}` } })),
  facets: (characters) => [
    { $facet: Object.fromEntries(times(characters / 30, (at) => [`f${at}`, [{ $match: { a: at } }]])) },
  ],
  fields: (characters) => [{ $project: Object.fromEntries(times(characters / 12, (at) => [`field${at}`, 1])) }],
};

/** Each makes one measure of the subscriptions of a stream as large as it can be. */
export const SUBSCRIPTIONS: Readonly<Record<string, (characters: number) => unknown[]>> = {
  'many subscriptions': (characters) => times(Math.min(50, characters / 30), () => ({ collection: 'posts' })),
  'many conditions': (characters) =>
    times(Math.min(50, characters / 200), (n) => ({
      collection: 'posts',
      filter: times(19, (at) => `f${at}_gt=${n}`).join('&'),
      since: 'now',
    })),
  'many listed values': (characters) =>
    times(Math.min(50, characters / 1_000), (n) => ({
      collection: 'posts',
      filter: times(19, (at) => `f${at}_in=${times(11, (value) => n * 1_000 + at * 20 + value).join(',')}`).join('&'),
      since: 'now',
    })),
  'many fields': (characters) =>
    times(Math.min(50, characters / 300), () => ({
      collection: 'posts',
      fields: times(90, (at) => `f${at}`),
      since: 'now',
    })),
};
