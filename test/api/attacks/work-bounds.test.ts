import { describe, expect, it } from 'vitest';
import { setChanges } from '../../world/collections.js';
import { buildCollection, placeDocuments } from '../../helpers/build-project.js';
import { use } from '../../helpers/use.js';
import { asSecret, buildEstate, callerWith, openStage, outcomeOf, passFor } from './stage.js';

const stage = use(await openStage());
const estate = await buildEstate(stage);
const open = await buildCollection(stage.app, estate.project, { name: 'open' });
await placeDocuments(stage.app, open, [{ a: 'x' }]);
await setChanges(stage.app, estate.project._id, open.name, { on: true });
const visitor = callerWith(stage, { 'x-api-key': estate.publishable });
const operator = callerWith(stage, passFor('an operator', estate));
const documents = `/api/projects/${estate.names.projectId}/collections/open/documents`;
const secret = asSecret(stage, estate);

const many = <T>(count: number, make: (at: number) => T): T[] => Array.from({ length: count }, (_, at) => make(at));
const patterns = (count: number, length = 1): string =>
  many(count, (at) => `f${at}_regex=${'b'.repeat(length)}`).join('&');

/** What is allowed to the last, and one more of it. */
const LISTS: readonly [what: string, most: string, beyond: string, code: string, limit: string][] = [
  ['patterns', patterns(20), patterns(21), 'TOO_MANY_PATTERNS', '20'],
  ['characters of patterns', patterns(16, 125), `${patterns(16, 125)}&a_regex=b`, 'PATTERNS_TOO_LONG', '2000'],
  [
    'characters that patterns match',
    many(4, (at) => `f${at}_regex=.{1000}`).join('&'),
    `${many(4, (at) => `f${at}_regex=.{1000}`).join('&')}&a_regex=b`,
    'PATTERN_TOO_LARGE',
    '4000',
  ],
];

describe('a list with too much work', () => {
  it.each(LISTS)('(%s) is answered up to the bound and refused beyond it', async (_what, most, beyond, code, limit) => {
    for (const ask of [
      (query: string) => visitor('GET', `/api/data/open?${query}`),
      (query: string) => visitor('GET', `/api/data/open/changes?${query}`),
      (query: string) => operator('GET', `${documents}?${query}`),
      (query: string) => operator('GET', `${documents}/export?${query}`),
    ]) {
      expect(outcomeOf(await ask(most))).toBe('200');
      const refused = await ask(beyond);
      expect(outcomeOf(refused)).toBe(`400 ${code}`);
      expect(refused.text).toContain(limit);
    }
  });
});

const regexes = (list: string[]): unknown => ({ $match: { $or: list.map((pattern) => ({ a: { $regex: pattern } })) } });
const found = (list: string[]): unknown => ({
  $project: { found: list.map((pattern) => ({ $regexMatch: { input: '$a', regex: pattern } })) },
});
const branches = (count: number): unknown[] => many(count, (at) => ({ a: at }));
const cases = (count: number): unknown => ({
  $project: {
    r: { $switch: { branches: many(count, (at) => ({ case: { $eq: ['$a', at] }, then: at })), default: 0 } },
  },
});

const PIPELINES: readonly [what: string, most: unknown, beyond: unknown, code: string, limit: string][] = [
  ['patterns of $match', regexes(many(20, String)), regexes(many(21, String)), 'TOO_MANY_PATTERNS', '20'],
  ['patterns of operators', found(many(20, String)), found(many(21, String)), 'TOO_MANY_PATTERNS', '20'],
  [
    'characters of patterns',
    regexes(many(5, () => 'b'.repeat(400))),
    found([...many(5, () => 'b'.repeat(400)), 'b']),
    'PATTERNS_TOO_LONG',
    '2000',
  ],
  [
    'characters that patterns match',
    regexes(['.{1000}', '.{1000}a{999}', '.{1000}']),
    regexes(['.{1000}.{1000}.{1000}.{1000}b']),
    'PATTERN_TOO_LARGE',
    '4000',
  ],
  [
    'values',
    { $match: { a: { $in: many(4990, (at) => at) } } },
    { $match: { a: { $in: many(5000, (at) => at) } } },
    'TOO_MANY_VALUES',
    '5000',
  ],
  ['branches', { $match: { $or: branches(1000) } }, { $match: { $or: branches(1001) } }, 'TOO_MANY_BRANCHES', '1000'],
  [
    'branches of several',
    { $match: { $or: branches(500), $nor: branches(500) } },
    { $match: { $or: branches(500), $nor: [...branches(499), { $and: branches(2) }] } },
    'TOO_MANY_BRANCHES',
    '1000',
  ],
  ['branches of $switch', cases(600), cases(1001), 'TOO_MANY_BRANCHES', '1000'],
];

describe('a pipeline with too much work', () => {
  it.each(PIPELINES)('(%s) is run up to the bound and refused beyond it', async (_what, most, beyond, code, limit) => {
    const run = (stage: unknown) => visitor('POST', '/api/data/open/aggregate', { pipeline: [stage] });
    expect(outcomeOf(await run(most))).toBe('200');
    const refused = await run(beyond);
    expect(outcomeOf(refused)).toBe(`400 ${code}`);
    expect(refused.text).toContain(limit);
  });
});

describe('a body with too many keys in one object', () => {
  it('is stored up to the bound and refused beyond it', async () => {
    const keys = (count: number) => Object.fromEntries(many(count, (at) => [`k${at}`, 1]));
    expect(outcomeOf(await secret('POST', '/api/data/open', keys(10_000)))).toBe('201');
    const refused = await secret('POST', '/api/data/open', { deep: [keys(10_001)] });
    expect(outcomeOf(refused)).toBe('413 TOO_MANY_KEYS');
    expect(refused.text).toContain('10000');
  });
});

describe('a body with too many values', () => {
  // Texts with what separates values count as one.
  const document = (values: number) => ({ list: many(values - 3, () => 1), text: '],[{"a\\":1,' });

  it.each([
    ['document', '/api/data/open', document(20_000), document(20_001), 20_000],
    // With the list itself.
    ['bulk write', '/api/data/open/bulk', bulk(0), bulk(1), 50_000],
    ['sign-in', '/api/admin/login', document(200), document(201), 200],
  ])('(a %s) is taken up to the bound and refused beyond it', async (_what, path, most, beyond, limit) => {
    expect(outcomeOf(await secret('POST', path, most))).not.toContain('413');
    const refused = await secret('POST', path, beyond);
    expect(outcomeOf(refused)).toBe('413 TOO_MANY_VALUES');
    expect(refused.text).toContain(`has ${limit + 1} values`);
    expect(refused.text).toContain(`at most ${limit}`);
  });

  function bulk(more: number): object[] {
    return many(10, (at) => document(5_000 - (at === 0 ? 1 - more : 0)));
  }
});
