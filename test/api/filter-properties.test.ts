import fc from 'fast-check';
import request from 'supertest';
import { describe, expect, it } from 'vitest';
import type { Collection } from '../world/collections.js';
import { FILTER_OPERATORS } from '../world/documents.js';
import { buildCollection, buildProject, placeDocuments, storedDocuments } from '../helpers/build-project.js';
import { runs } from '../helpers/runs.js';
import { useTestApp } from '../helpers/use.js';

type Value = string | number | boolean | null | undefined | Date | Value[];
type Row = Record<string, Value>;

const TEXTS = [
  '',
  'a',
  'A',
  'ab',
  'b',
  'B',
  'é',
  'ß',
  '😀',
  '\uffff',
  '10',
  '9',
  'true',
  'a,b',
  '50%',
  'a+b',
  'a|b',
  'a.b',
  '^a',
  '(\\',
];
const NUMBERS = [-1.5, 0, 1, 9, 10, 1e21, 0.1];
const DATES = ['2026-01-01T00:00:00.000Z', '2026-01-01T00:00:00.001Z', '1969-12-31T23:59:59.000Z'];
const PATTERNS = ['^a', 'b$', '^[ab]+$', '.', 'A|é', '^$', '\\+', '\\d', '[^a]', 'a.?b'];

const pick = <T>(values: readonly T[]) => fc.constantFrom(...values);
const maybe = <T>(arbitrary: fc.Arbitrary<T>) => fc.option(arbitrary, { nil: undefined });
const row: fc.Arbitrary<Row> = fc.record({
  text: maybe(pick(TEXTS)),
  number: maybe(pick(NUMBERS)),
  flag: maybe(fc.boolean()),
  date: maybe(pick(DATES).map((text) => new Date(text))),
  list: maybe(fc.array(pick(TEXTS), { maxLength: 3 })),
});
/** Every comparison there is; those of texts are asked of texts alone, areas in a test of their own. */
const OPERATORS = [
  '',
  ...FILTER_OPERATORS.filter(({ takes }) => takes !== 'text' && takes !== 'area').map(({ suffix }) => suffix),
];
const OF_TEXTS = FILTER_OPERATORS.filter(({ takes }) => takes === 'text').map(({ suffix }) => suffix);

interface Asked {
  field: string;
  operator: string;
  texts: string[];
}

const asked = (field: string, texts: readonly string[], operators = OPERATORS): fc.Arbitrary<Asked> =>
  pick(operators).chain((operator) => {
    if (operator === '_exists') return pick(['true', 'false']).map((text) => ({ field, operator, texts: [text] }));
    const several = operator === '_in' ? { minLength: 2, maxLength: 3 } : { minLength: 1, maxLength: 1 };
    return fc.array(pick(texts), several).map((chosen) => ({ field, operator, texts: chosen }));
  });
const ofText = (field: string): fc.Arbitrary<Asked> =>
  pick(OF_TEXTS).chain((operator) =>
    pick(operator === '_regex' ? PATTERNS : TEXTS.slice(1)).map((text) => ({ field, operator, texts: [text] })),
  );

const typedQuestion = fc.oneof(
  asked('text', TEXTS),
  asked('number', NUMBERS.map(String)),
  asked('flag', ['true', 'false']),
  asked('date', DATES),
  asked('list', TEXTS),
  ofText('text'),
  ofText('list'),
);
const looseQuestion = fc.oneof(asked('v', [...TEXTS, ...NUMBERS.map(String), 'true', 'false', 'null']), ofText('v'));

/**
 * The plainest filter one could write: a value is compared with what it can be compared with, a list by any of its
 * items.
 */
function matches(value: Value, { operator, texts }: Asked, loose: boolean): boolean {
  const items = Array.isArray(value) ? value : [value];
  const forms = texts.flatMap((text) => formsOf(text, value, loose));
  const equal = items.some((item) => forms.some((form) => same(item, form)));
  switch (operator) {
    case '_ne':
      return !equal;
    case '_exists':
      return (value !== undefined) === (texts[0] === 'true');
    case '_regex':
      return items.some((item) => typeof item === 'string' && new RegExp(texts[0]!, 'iu').test(item));
    case '_startswith':
      return items.some((item) => typeof item === 'string' && item.startsWith(texts[0]!));
    case '_gt':
      return items.some((item) => forms.some((form) => compare(item, form, (order) => order > 0)));
    case '_gte':
      return items.some((item) => forms.some((form) => compare(item, form, (order) => order >= 0)));
    case '_lt':
      return items.some((item) => forms.some((form) => compare(item, form, (order) => order < 0)));
    case '_lte':
      return items.some((item) => forms.some((form) => compare(item, form, (order) => order <= 0)));
    default:
      return equal;
  }
}

function formsOf(text: string, value: Value, loose: boolean): Value[] {
  if (value instanceof Date) return [new Date(text)];
  if (!loose) return [typeof value === 'number' ? Number(text) : typeof value === 'boolean' ? text === 'true' : text];
  if (text === 'null') return [null, text];
  if (text === 'true' || text === 'false') return [text === 'true', text];
  return /^-?[\d.]+(e[+-]?\d+)?$/.test(text) ? [Number(text), text] : [text];
}

function same(item: Value, form: Value): boolean {
  if (form === null) return item === null || item === undefined;
  if (item instanceof Date && form instanceof Date) return item.getTime() === form.getTime();
  return item === form;
}

function compare(item: Value, form: Value, test: (order: number) => boolean): boolean {
  if (item === undefined || item === null || form === null || typeof item !== typeof form) return false;
  if (typeof item === 'string') return test(Buffer.compare(Buffer.from(item), Buffer.from(form as string)));
  return test(Number(item) - Number(form));
}

function toQuery({ field, operator, texts }: Asked): string {
  const [first, ...more] = texts.map((text) => `${field}${operator}=${encodeURIComponent(text)}`);
  return [first, ...more].join('&');
}

const test = await useTestApp();
const project = await buildProject(test.app);
const typed = await buildCollection(test.app, project.project, {
  name: 'typed',
  fields: [
    { name: 'text', type: 'String' },
    { name: 'number', type: 'Number' },
    { name: 'flag', type: 'Boolean' },
    { name: 'date', type: 'Date' },
    { name: 'list', type: 'Array', items: { type: 'String' } },
  ],
  indexes: ['text', 'number', 'list'],
});
const loose = await buildCollection(test.app, project.project, { name: 'loose', indexes: ['v'] });

async function store(collection: Collection, rows: readonly Row[]): Promise<Map<string, Row>> {
  await storedDocuments(test.app, collection).deleteMany({});
  const given = rows.map((one) => Object.fromEntries(Object.entries(one).filter(([, value]) => value !== undefined)));
  const ids = await placeDocuments(test.app, collection, given);
  return new Map(ids.map((id, at) => [id, rows[at]!]));
}

/** The filter as an alternative of `or` has it. */
function toEntry({ field, operator, texts }: Asked): [string, unknown] {
  const isText = field === 'text' || field === 'list' || field === 'date';
  const values = texts.map((text): unknown => (isText || operator === '_regex' ? text : JSON.parse(text)));
  return [field + operator, operator === '_in' ? values : values[0]];
}

function answered(collection: Collection, questions: readonly Asked[]): Promise<string[]> {
  return listed(collection, questions.map(toQuery).join('&'));
}

async function listed(collection: Collection, query: string): Promise<string[]> {
  const { body, status } = await request(test.server)
    .get(`/api/data/${collection.name}?limit=1000&sort=_id&${query}`)
    .set('x-api-key', project.publishable);
  expect(status, `${query}: ${JSON.stringify(body)}`).toBe(200);
  const { items, total } = (body as { data: { items: { _id: string }[]; total: number } }).data;
  expect(total).toBe(items.length);
  return items.map(({ _id }) => _id);
}

const differentParameters = (questions: readonly Asked[]): boolean =>
  new Set(questions.map(({ field, operator }) => field + operator)).size === questions.length;

describe('filters agree with a plain filter in memory', () => {
  it('on typed fields', async () => {
    const questions = fc.array(typedQuestion, { minLength: 1, maxLength: 3 }).filter(differentParameters);
    const property = fc.asyncProperty(
      fc.array(row, { minLength: 1, maxLength: 12 }),
      fc.array(questions, { minLength: 12, maxLength: 12 }),
      async (rows, many) => {
        const stored = await store(typed, rows);
        for (const asking of many) {
          const expected = [...stored].filter(([, found]) =>
            asking.every((one) => matches(found[one.field], one, false)),
          );
          expect(await answered(typed, asking), asking.map(toQuery).join('&')).toEqual(expected.map(([id]) => id));
        }
      },
    );
    await fc.assert(property, { seed: 21, numRuns: runs(60) });
  });

  it('on fields that may hold anything', async () => {
    const scalar = fc.oneof(pick<Value>(TEXTS), pick<Value>(NUMBERS), fc.constantFrom<Value>(true, false, null));
    const value = fc.oneof(scalar, fc.array(scalar, { maxLength: 3 }), fc.constant(undefined));
    const property = fc.asyncProperty(
      fc.array(fc.record({ v: value }), { minLength: 1, maxLength: 12 }),
      fc.array(looseQuestion, { minLength: 12, maxLength: 12 }),
      async (rows, many) => {
        const stored = await store(loose, rows as Row[]);
        for (const one of many) {
          const expected = [...stored].filter(([, found]) => matches(found.v, one, true));
          expect(await answered(loose, [one]), toQuery(one)).toEqual(expected.map(([id]) => id));
        }
      },
    );
    await fc.assert(property, { seed: 22, numRuns: runs(60) });
  });

  it('as alternatives of `or`, in lists and counts', async () => {
    const alternatives = fc.array(fc.array(typedQuestion, { minLength: 1, maxLength: 3 }).filter(differentParameters), {
      minLength: 1,
      maxLength: 3,
    });
    const property = fc.asyncProperty(
      fc.array(row, { minLength: 1, maxLength: 12 }),
      fc.array(fc.tuple(alternatives, fc.option(typedQuestion)), { minLength: 12, maxLength: 12 }),
      async (rows, many) => {
        const stored = await store(typed, rows);
        for (const [any, beside] of many) {
          const expected = [...stored].filter(
            ([, found]) =>
              any.some((all) => all.every((one) => matches(found[one.field], one, false))) &&
              (!beside || matches(found[beside.field], beside, false)),
          );
          const or = JSON.stringify(any.map((all) => Object.fromEntries(all.map(toEntry))));
          const query = `or=${encodeURIComponent(or)}${beside ? `&${toQuery(beside)}` : ''}`;
          expect(await listed(typed, query), query).toEqual(expected.map(([id]) => id));
          const counted = await request(test.server)
            .get(`/api/data/typed?count=true&${query}`)
            .set('x-api-key', project.publishable);
          expect(counted.body).toMatchObject({ data: { count: expected.length } });
        }
      },
    );
    await fc.assert(property, { seed: 23, numRuns: runs(40) });
  });

  it('on undeclared fields whose names end like a suffix', async () => {
    const names = FILTER_OPERATORS.filter(({ takes }) => takes !== 'area').map(({ suffix }) => `seen${suffix}`);
    for (const name of names) {
      for (const value of ['true', 'a', '5', 'null']) {
        const form = value === 'true' ? true : value === '5' ? 5 : value;
        const stored = await store(loose, [{ [name]: form }, { other: form }, { [name]: 'something else' }]);
        if (name === 'seen_exists' && value !== 'true') continue;
        const found = await listed(loose, `${name}=${value}`);
        const own = [...stored].filter(([, one]) => one[name] === form).map(([id]) => id);
        expect(found, `${name}=${value}`).toEqual(expect.arrayContaining(own));
      }
    }
  });
});

describe('a malformed `or` is 400 and says what it takes', () => {
  it.each([
    ['', 'JSON list'],
    ['x', 'JSON list'],
    ['{}', 'JSON list'],
    ['[]', 'JSON list'],
    ['[1]', 'alternative 1 must be an object'],
    ['[{}]', 'alternative 1 must be an object'],
    ['[{"text":{"$gt":""}}]', 'must be a text'],
    ['[{"text":["a","b"]}]', 'given more than once'],
    ['[{"text":"\\ud800"}]', 'not valid Unicode'],
    ['[{"nowhere":1}]', 'Unknown field'],
    ['[{"isDeleted":true}]', 'cannot be filtered by'],
    ['[{"or":[{"text":"a"}]}]', 'must be a text'],
    [JSON.stringify(Array.from({ length: 21 }, () => ({ text: 'a' }))), 'at most 20'],
  ])('%s', async (or, said) => {
    const reply = await request(test.server)
      .get(`/api/data/typed?or=${encodeURIComponent(or)}`)
      .set('x-api-key', project.publishable);
    expect(reply.body).toMatchObject({ code: 'INVALID_QUERY', message: expect.stringContaining(said) as string });
  });
});
