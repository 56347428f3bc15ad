import { rmSync } from 'node:fs';
import type { Document } from 'bson';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type DataCollection, type DataDb, type Engine, openEngine } from '../../../../src/engine/index.js';
import { documentIndexes } from '../../../../src/features/collections/indexes/document-indexes.js';
import { allOf, keysetFilters } from '../../../../src/features/documents/query/keyset-filter.js';
import { sortKeyOf } from '../../../../src/features/documents/query/sort-key.js';
import { openSeed } from '../../../helpers/seed.js';
import { temporaryDir } from '../../../../src/engine/test/transports.js';

/** Five to twenty a second, and other ones in each deep run. For a long search: BSVC_TEST_RUNS=20000. */
const CASES = Number(process.env['BSVC_TEST_RUNS'] ?? 150);
const SEED = openSeed('plans of lists');
const PER_COLLECTION = 20;
/** In milliseconds. */
const LONG = 120_000 + CASES * 500;

interface IndexSpec {
  name: string;
  key: Document;
  sparse?: boolean;
  partialFilterExpression?: Document;
}

/** Whether the filter asks, beside all else, for what the index says of all its documents. */
function holdsAll({ key, sparse, partialFilterExpression = {} }: IndexSpec, filter: Document): boolean {
  const conditions = (part: Document): [string, unknown][] =>
    Object.entries(part).flatMap(([path, asked]) =>
      path === '$and' ? (asked as Document[]).flatMap(conditions) : [[path, asked] as [string, unknown]],
    );
  const asked = conditions(filter);
  const isAsked = (path: string, value?: unknown): boolean =>
    asked.some(([each, what]) => each === path && (value === undefined || what === value));
  if (sparse && !Object.keys(key).some((path) => isAsked(path))) return false;
  return Object.entries(partialFilterExpression).every(([path, value]) => isAsked(path, value));
}

// oxlint-disable-next-line typescript/no-explicit-any -- documents of any shape
type Docs = DataCollection<any>;

interface Shape {
  filter: Document;
  sort: Record<string, 1 | -1>;
  limit: number;
  skip: number;
}

/** The same numbers for the same seed. */
function generator(seed: number) {
  let state = seed >>> 0;
  const random = (): number => {
    state = (state + 0x6d2b79f5) >>> 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
  };
  const below = (n: number): number => Math.floor(random() * n);
  return {
    random,
    below,
    one: <T>(items: readonly T[]): T => items[below(items.length)]!,
    some: <T>(items: readonly T[], most: number): T[] => items.filter(() => random() < most / items.length),
    /** Small numbers much more often than large ones. */
    skewed: (n: number): number => Math.floor(n * random() ** 3),
  };
}

type Random = ReturnType<typeof generator>;

const SPECS = [
  ...['status', 'author', '-views', 'price', 'cat', 'opt', 'meta.lang'],
  ...['status,-views', 'author,price', 'cat,status', 'meta.lang,meta.score', 'author,-createdAt'],
];
/** Most lists ask for what is not in the trash, as here; some for all, some for the trash alone. */
const ACTIVE = Array.from({ length: 8 }, () => false);
const SORTS = ['-createdAt', 'createdAt', '-views', 'views', 'price', 'cat', '-cat', 'status,-views', '-_id', 'title'];

function documentOf({ random, below, skewed }: Random, n: number, total: number): Document {
  const author = `a${skewed(16)}`;
  return {
    _id: n,
    userId: `u${skewed(12)}`,
    author,
    // Some values stand at one end of the time only.
    status: n < total / 10 && random() < 0.8 ? 'held' : ['new', 'open', 'done', 'done', 'done'][below(5)],
    cat: `c${skewed(5)}`,
    views: author === 'a3' ? 5000 + below(100) : skewed(5000),
    price: below(1000),
    title: `Title ${below(total)}`,
    tags: Array.from({ length: below(4) }, () => `t${skewed(30)}`),
    meta: { lang: ['de', 'en', 'en', 'fr'][below(4)], score: below(100) },
    ...(random() < 0.1 ? { opt: below(20) } : {}),
    createdAt: new Date(1_700_000_000_000 + Math.floor(n / (random() < 0.5 ? 1 : 200)) * 1000),
    isDeleted: random() < 0.05,
  };
}

function conditionOf({ random, below, one, skewed }: Random): Document {
  const from = skewed(5000);
  return one<() => Document>([
    () => ({ author: `a${skewed(16)}` }),
    () => ({ status: one(['new', 'held', 'done', 'none']) }),
    () => ({ cat: `c${skewed(5)}` }),
    () => ({ cat: { $in: [`c${below(5)}`, `c${below(5)}`] } }),
    () => ({ author: { $in: Array.from({ length: 1 + below(30) }, () => `a${skewed(16)}`) } }),
    () => ({ views: { $gte: from, ...(random() < 0.5 ? { $lt: from + 200 } : {}) } }),
    () => ({ views: { $lt: skewed(5000) } }),
    () => ({ price: { $gte: below(1000) } }),
    () => ({ price: below(1000) }),
    () => ({ tags: `t${skewed(30)}` }),
    () => ({ opt: { $exists: true } }),
    () => ({ opt: below(20) }),
    () => ({ status: { $ne: 'done' } }),
    () => ({ 'meta.lang': one(['de', 'en', 'fr']) }),
    () => ({ 'meta.score': { $gte: below(100) } }),
    () => ({ $or: [{ author: `a${skewed(16)}` }, { cat: `c${skewed(5)}` }] }),
    () => ({ createdAt: { $gte: new Date(1_700_000_000_000 + below(1500) * 1000) } }),
  ])();
}

/** What rules leave of a list: own documents, those of a list that names the user, those of some of many values. */
const READ_RULE = 'doc.userId = user.id or user.id in doc.tags or doc.author in user.authors';
const RULES = { read: READ_RULE, create: READ_RULE, update: READ_RULE, delete: READ_RULE };

function conditionOfRules({ random, below, skewed }: Random): Document {
  const authors = Array.from({ length: 1 + below(random() < 0.5 ? 3 : 14) }, () => `a${skewed(16)}`);
  const alternatives: Document[] = [
    { userId: `u${skewed(12)}` },
    { tags: `t${skewed(30)}` },
    { author: authors.length === 1 ? authors[0] : { $in: authors } },
  ].filter(() => random() < 0.8);
  if (alternatives.length === 0) return { userId: `u${skewed(12)}` };
  return alternatives.length === 1 ? alternatives[0]! : { $or: alternatives };
}

function shapeOf(random: Random, docs: readonly Document[], ruled: boolean): Shape {
  const path = random.one(SORTS);
  const fields = path.split(',').map((part) => {
    return part.startsWith('-')
      ? { path: part.slice(1), direction: -1 as const }
      : { path: part, direction: 1 as const };
  });
  if (fields[0]!.path !== '_id') fields.push({ path: '_id', direction: fields.at(-1)!.direction });
  const conditions: Document[] = [
    ...(ruled && random.random() < 0.8 ? [conditionOfRules(random)] : []),
    ...(!ruled && random.random() < 0.4 ? [{ userId: `u${random.skewed(12)}` }] : []),
    { isDeleted: random.one([...ACTIVE, { $in: [false, true] }, true]) },
    ...Array.from({ length: random.below(3) }, () => conditionOf(random)),
  ];
  const atCursor = random.random() < 0.25;
  if (atCursor) {
    const position = fields.map((field) => sortKeyOf(random.one(docs), field));
    conditions.push(keysetFilters(fields, position)[0]!);
  }
  return {
    filter: conditions.length === 0 ? {} : allOf(conditions),
    sort: Object.fromEntries(fields.map(({ path, direction }) => [path, direction])),
    limit: random.one([5, 20, 20, 20, 100]),
    skip: random.random() < 0.1 ? random.below(100) : 0,
  };
}

describe('the plan of a list', () => {
  const dataDir = temporaryDir();
  let engine: Engine;
  let db: DataDb;

  beforeAll(() => {
    engine = openEngine({ dataDir, durability: 'relaxed' });
    db = engine.db('choice');
  });

  afterAll(async () => {
    await engine.close();
    rmSync(dataDir, { recursive: true, force: true });
  });

  /** A collection as the service keeps it, with indexes of other kinds beside them. */
  async function makeCollection(random: Random, name: string, ruled: boolean) {
    const items: Docs = db.collection(name);
    const indexes = documentIndexes({
      mode: 'flexible',
      fields: [],
      rls: ruled
        ? null
        : random.one([null, { mode: 'private', ownerField: 'userId' }, { mode: 'public-read', ownerField: 'userId' }]),
      ...(ruled ? { rules: RULES } : {}),
      indexes: random.some([...SPECS, 'tags'], 4),
    } as never);
    await items.createIndexes(indexes as never);
    if (random.random() < 0.3) await items.createIndex({ opt: 1, price: 1 }, { sparse: true, name: 'sparse' });
    if (random.random() < 0.3) {
      await items.createIndex({ views: 1 }, { partialFilterExpression: { status: 'held' }, name: 'partial' });
    }
    const total = 1000 + random.below(1500);
    const docs = Array.from({ length: total }, (_, n) => documentOf(random, n, total));
    await items.insertMany(docs);
    return { items, docs };
  }

  /** What a plan looks at; null where the hint cannot serve. */
  async function readsOf(name: string, shape: Shape, hint?: unknown): Promise<{ reads: number; plan: unknown } | null> {
    const find = { find: name, ...shape, ...(hint === undefined ? {} : { hint }) };
    const told = (await db.command({ explain: find })) as unknown as {
      queryPlanner: { winningPlan: unknown };
      executionStats: { totalKeysExamined: number; totalDocsExamined: number };
    };
    const { totalKeysExamined, totalDocsExamined } = told.executionStats;
    return { reads: Math.max(totalKeysExamined, totalDocsExamined), plan: told.queryPlanner };
  }

  async function answer(items: Docs, { filter, ...options }: Shape, hint?: unknown): Promise<unknown[]> {
    const found = await items
      .find(filter as never, { ...options, projection: { _id: 1 }, ...(hint === undefined ? {} : { hint }) } as never)
      .toArray();
    return found.map(({ _id }: { _id: unknown }) => _id);
  }

  it(
    'reads at most three times what the best of all does, and answers the same',
    async () => {
      let underRules = 0;
      const forcedBy = new Map<string, number>();
      for (let collection = 0; collection * PER_COLLECTION < CASES; collection++) {
        const random = generator(SEED + collection);
        const name = `items${String(collection)}`;
        const ruled = collection % 3 === 1;
        const { items, docs } = await makeCollection(random, name, ruled);
        const indexes = (await items.indexes()) as IndexSpec[];
        for (let n = 0; n < PER_COLLECTION; n++) {
          const shape = shapeOf(random, docs, ruled);
          const note = `seed ${String(SEED + collection)}, case ${String(n)}: ${JSON.stringify(shape)}`;
          const taken = (await readsOf(name, shape))!;
          if (ruled) underRules++;
          const expected = await answer(items, shape, { $natural: 1 });
          expect(await answer(items, shape), note).toEqual(expected);
          for (const index of [null, ...random.some(indexes, 6)]) {
            // An index that does not hold all answers serves nobody.
            if (index && !holdsAll(index, shape.filter)) continue;
            const hint = index?.name ?? { $natural: 1 };
            const forced = await readsOf(name, shape, hint).catch(() => null);
            if (forced === null) continue;
            expect(await answer(items, shape, hint), `${note}\n${JSON.stringify(hint)}`).toEqual(expected);
            const kind = index === null ? 'all' : index.sparse ? 'sparse' : index.name.split('_')[0] || '_id';
            forcedBy.set(kind, (forcedBy.get(kind) ?? 0) + 1);
            if (taken.reads <= forced.reads * 3 + 100) continue;
            expect(taken.reads, `${note}\n${JSON.stringify(hint)}: ${JSON.stringify(taken.plan)}`).toBeLessThanOrEqual(
              forced.reads * 3 + 100,
            );
          }
        }
        await items.drop();
      }
      expect(underRules).toBeGreaterThan(0);
      console.log(JSON.stringify({ underRules, ...Object.fromEntries(forcedBy) }));
    },
    LONG,
  );

  it(
    'is remembered for lists and alternatives, and filled with the values of each query',
    async () => {
      const random = generator(SEED);
      const { items } = await makeCollection(random, 'remembered', true);
      const value = (of: string): string | null => (random.random() < 0.05 ? null : `${of}${String(random.below(18))}`);
      const list = (): (string | null)[] => Array.from({ length: 1 + random.below(12) }, () => value('a'));
      const shapes: (() => Document)[] = [
        () => ({ isDeleted: false, author: { $in: list() } }),
        () => ({ isDeleted: false, $or: [{ userId: value('u') }, { tags: value('t') }, { author: { $in: list() } }] }),
        () => ({ $and: [{ $or: [{ userId: value('u') }, { author: value('a') }] }, { isDeleted: false }] }),
        () => ({ isDeleted: false, status: 'done', $or: [{ tags: value('t') }, { author: { $in: list() } }] }),
        () => ({
          isDeleted: false,
          $or: [{ tags: { $in: ['t1', value('t')] } }, { userId: value('u'), status: 'new' }],
        }),
        () => ({ isDeleted: random.random() < 0.5, $or: [{ author: value('a') }, { author: value('a') }] }),
      ];
      let found = 0;
      for (let n = 0; n < Math.max(100, CASES); n++) {
        const shape = {
          filter: random.one(shapes)(),
          sort: random.one([{ createdAt: -1, _id: -1 }, { views: -1, _id: -1 }, {}] as Record<string, 1 | -1>[]),
          limit: random.one([3, 20, 0]),
          skip: 0,
        };
        const note = JSON.stringify(shape);
        const answers = await answer(items, shape);
        found += answers.length;
        const expected = await answer(items, { ...shape, limit: 0 }, { $natural: 1 });
        if (Object.keys(shape.sort).length > 0) {
          expect(answers, note).toEqual(shape.limit === 0 ? expected : expected.slice(0, shape.limit));
        } else {
          expect(answers.length, note).toBe(
            shape.limit === 0 ? expected.length : Math.min(shape.limit, expected.length),
          );
          for (const id of answers) expect(expected, note).toContain(id);
        }
        expect(await items.countDocuments(shape.filter as never), note).toBe(expected.length);
        // The same once more, by what is kept of the first time.
        if (Object.keys(shape.sort).length > 0) expect(await answer(items, shape), note).toEqual(answers);
        expect(await items.countDocuments(shape.filter as never), note).toBe(expected.length);
      }
      expect(found).toBeGreaterThan(100);
    },
    LONG,
  );
});
