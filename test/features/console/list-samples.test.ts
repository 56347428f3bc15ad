import { execFileSync } from 'node:child_process';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { createCoreClient } from '../../../src/client/core.js';
import { clientCall, queryOptions, shownOptions } from '../../../src/console/query/list-samples.js';
import { openSeed } from '../../helpers/seed.js';

type Query = [name: string, value: string][];

const value = fc.oneof(
  fc.constantFrom('a', 'a,b', '10', "O'Hara", '$(id)', '`id`', '"x"', 'a b', '\\', '-', '--yes', 'é\u2028'),
  fc.string({ unit: 'binary-ascii', minLength: 1 }).filter((text) => !text.includes('\0')),
);
const filter = fc.tuple(
  fc.constantFrom('title', 'views_gte', 'tag_in', 'name_regex', 'filter[sort]', 'a-b', 'toString', '__proto__'),
  value,
);
const alternatives = fc
  .array(fc.dictionary(fc.constantFrom('title', 'views_gt'), fc.oneof(value, fc.nat()), { minKeys: 1 }), {
    minLength: 1,
    maxLength: 3,
  })
  .map((list): [string, string] => ['or', JSON.stringify(list)]);
/** Each at most once. */
const OPTIONS: Record<string, fc.Arbitrary<string>> = {
  or: alternatives.map(([, text]) => text),
  sort: fc.constantFrom('title', '-views', '-views,title'),
  fields: fc.constantFrom('title', 'title,views'),
  populate: fc.constantFrom('author', 'author,editor'),
  expand: fc.constant('author'),
  limit: fc.constantFrom('5', '1000'),
  page: fc.constantFrom('1', '3'),
  skip: fc.constant('20'),
  cursor: fc.constantFrom('start', 'b2Zmc2V0'),
  count: fc.constantFrom('true', 'false'),
  meta: fc.constantFrom('true', 'false'),
  include_deleted: fc.constantFrom('true', 'false', 'only'),
};
const query: fc.Arbitrary<Query> = fc
  .tuple(fc.array(filter, { maxLength: 3 }), fc.subarray(Object.keys(OPTIONS), { maxLength: 4 }), fc.record(OPTIONS))
  .map(([filters, names, values]) => [...filters, ...names.map((name): [string, string] => [name, values[name]!])]);

/** The same list, asked for in one way: order does not matter, nor how often a value is said. */
const meaning = (given: Query): string[] => [
  ...new Set(
    given
      .filter(([name, text]) => name !== 'meta' && !(text === 'false' && ['count', 'include_deleted'].includes(name)))
      .flatMap(([name, text]) =>
        name === 'expand' || name === 'populate'
          ? text.split(',').map((path) => JSON.stringify(['populate', path]))
          : [JSON.stringify([name, text])],
      )
      .sort(),
  ),
];

describe('what the console shows as code', () => {
  it('asks by the client for the same list', async () => {
    let shown = 0;
    await fc.assert(
      fc.asyncProperty(query, async (given) => {
        const code = clientCall("it's", given);
        if (code === null) return;
        shown++;
        let asked = new URL('http://unasked.example');
        const send = (url: unknown): Promise<Response> => {
          asked = new URL(url as string);
          return Promise.resolve(Response.json({ success: true, data: { items: [], count: 0 } }));
        };
        const api = createCoreClient({ url: 'http://api.example', key: 'pk_x', fetch: send as typeof fetch });
        const run = new Function('api', `return (async () => { ${code} })()`) as (api: unknown) => Promise<void>;
        await run(api);
        expect(asked.pathname).toBe("/api/data/it's");
        expect(meaning([...asked.searchParams])).toEqual(meaning(given));
      }),
      { numRuns: 500, seed: openSeed('lists by the client') },
    );
    expect(shown).toBeGreaterThan(200);
  });

  it('asks by the command for the same list, and runs nothing else', () => {
    let shown = 0;
    fc.assert(
      fc.property(query, (given) => {
        const options = queryOptions(given);
        if (options === null) return;
        shown++;
        const printed = execFileSync('sh', ['-c', `printf '%s\\0' bsvc ${options}`], { encoding: 'utf8' });
        const words = printed.split('\0').slice(1, -1);
        const asked: Query = [];
        for (let at = 0; at < words.length; at++) {
          const [, option] = /^--([a-z-]+)$/.exec(words[at]!)!;
          if (option === 'count') asked.push(['count', 'true']);
          else if (option === 'include-deleted') asked.push(['include_deleted', 'true']);
          else if (option === 'only-deleted') asked.push(['include_deleted', 'only']);
          else if (option === 'filter') asked.push(/^([^=]*)=([^]*)$/.exec(words[++at]!)!.slice(1) as [string, string]);
          else asked.push([option!, words[++at]!]);
        }
        expect(meaning(asked)).toEqual(meaning(given));
      }),
      { numRuns: 60, seed: openSeed('lists by the command') },
    );
    expect(shown).toBeGreaterThan(20);
  });
});

it('the command of a list of the console shows the list that is shown', () => {
  const shown = (query: string): string => shownOptions([...new URLSearchParams(query)]);
  expect(shown('views_lt=7&limit=50&cursor=start&fields=title')).toBe('--filter views_lt=7 --limit 50');
  expect(shown('include_deleted=only&sort=-views')).toBe('--only-deleted --sort -views');
  expect(shown('as=ann@x.example&sort=$(id)')).toBe("--as ann@x.example --sort '$(id)'");
});
