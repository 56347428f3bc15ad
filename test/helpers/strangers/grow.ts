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
  'one text': (characters) => `"${'a'.repeat(characters)}"`,
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

/** The bodies that come of an example when one of its values, or all of it, is grown; `key` names the place. */
export function growExample(example: unknown, grow: Grow, characters: number): { key: string; body: string }[] {
  const grown = grow(characters);
  if (Array.isArray(example)) {
    return [
      { key: 'all', body: grown },
      { key: 'first', body: `[${growExample(example[0], grow, characters)[0]!.body}]` },
    ];
  }
  if (typeof example !== 'object' || example === null) return [{ key: 'all', body: grown }];
  const entries = Object.entries(example);
  return [
    ...entries.map(([key]) => {
      const members = entries.map(
        ([name, value]) => `${JSON.stringify(name)}:${name === key ? grown : JSON.stringify(value)}`,
      );
      return { key, body: `{${members.join(',')}}` };
    }),
    {
      key: 'new',
      body: `{${[...entries.map(([name, value]) => `${JSON.stringify(name)}:${JSON.stringify(value)}`), `"grown":${grown}`].join(',')}}`,
    },
  ];
}
