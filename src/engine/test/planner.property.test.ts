import { rmSync } from 'node:fs';
import fc from 'fast-check';
import { Binary, Decimal128, Long, MaxKey, MinKey, ObjectId } from 'mongodb';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type DataCollection, type DataDb, type Engine, openEngine } from '../index.js';
import { docFromApp } from '../codec/app-values.js';
import { collationOf, type Strength } from '../query/collation/collation.js';
import { compileSort } from '../query/sort.js';
import { UnionScan } from '../planner/scans/union-scan.js';
import { compareValues } from '../query/values/compare.js';
import { temporaryDir } from './transports.js';
import { openSeed } from './helpers/seed.js';

/** More runs for a long search: BSVC_TEST_RUNS=5000. */
const RUNS = Number(process.env['BSVC_TEST_RUNS'] ?? 60);
const SEED = openSeed('plans');
const QUERIES_PER_COLLECTION = 12;
let indexes = 0;

// oxlint-disable-next-line typescript/no-explicit-any -- documents of any shape
type Docs = DataCollection<any>;

const scalar = fc.oneof(
  { weight: 8, arbitrary: fc.integer({ min: -3, max: 5 }) },
  { weight: 2, arbitrary: fc.constantFrom(1.5, -0.5, NaN, Infinity, -Infinity, -0) },
  { weight: 3, arbitrary: fc.constantFrom('', 'a', 'ab', 'b', 'a\u0000', 'é', '\u{1F600}', 'x'.repeat(2000)) },
  { weight: 2, arbitrary: fc.constantFrom('A', 'aB', 'É', 'e', 'á', 'X'.repeat(2000)) },
  { weight: 2, arbitrary: fc.constant(null) },
  { weight: 2, arbitrary: fc.boolean() },
  {
    weight: 2,
    arbitrary: fc.constantFrom<unknown>(
      new Date(0),
      new Date(5),
      new Date(-5),
      new ObjectId('000000000000000000000001'),
      new ObjectId('000000000000000000000002'),
      Long.fromString('9007199254740993'),
      Long.fromString('9007199254740992'),
      Decimal128.fromString('1'),
      Decimal128.fromString('1.5'),
      Decimal128.fromString('0.1'),
      Decimal128.fromString('NaN'),
      new Binary(Buffer.from('ab')),
      new MinKey(),
      new MaxKey(),
      /a/i,
    ),
  },
);
const inner = fc.oneof(scalar, fc.array(scalar, { maxLength: 3 }));
const embedded = fc.dictionary(fc.constantFrom('x', 'y'), inner, { maxKeys: 2 });
const value: fc.Arbitrary<unknown> = fc.oneof(
  { weight: 6, arbitrary: scalar },
  { weight: 2, arbitrary: fc.array(fc.oneof(scalar, embedded, fc.array(scalar, { maxLength: 2 })), { maxLength: 3 }) },
  { weight: 2, arbitrary: embedded },
);
const doc = fc.dictionary(fc.constantFrom('a', 'b', 'c'), value, { maxKeys: 3 });
const path = fc.constantFrom('a', 'b', 'c', 'a.x', 'b.x', 'a.y', '_id');
const order = fc.constantFrom(1, -1);

const condition: fc.Arbitrary<unknown> = fc.oneof(
  { weight: 4, arbitrary: value },
  {
    weight: 4,
    arbitrary: fc.dictionary(fc.constantFrom('$gt', '$gte', '$lt', '$lte', '$eq'), scalarOperand(), {
      minKeys: 1,
      maxKeys: 2,
    }),
  },
  { weight: 2, arbitrary: fc.record({ $in: fc.array(scalarOperand(), { maxLength: 4 }) }) },
  { weight: 2, arbitrary: fc.constantFrom(/^a/, /^ab/, /^a.*/, /^a\u0000?/, /^é$/, /^x{3}/, /^-?a/i, /^A/i) },
  { weight: 1, arbitrary: fc.record({ $exists: fc.boolean() }) },
  { weight: 1, arbitrary: fc.record({ $type: fc.constantFrom('string', 'number', 'array', 'null', 'date') }) },
  { weight: 1, arbitrary: fc.record({ $ne: scalarOperand() }) },
  { weight: 1, arbitrary: fc.record({ $not: fc.record({ $gt: scalarOperand() }) }) },
  { weight: 1, arbitrary: fc.record({ $elemMatch: fc.record({ $gte: scalarOperand() }) }) },
  { weight: 1, arbitrary: fc.record({ $all: fc.array(scalarOperand(), { minLength: 1, maxLength: 2 }) }) },
);

/** Regular expressions are no operands of comparisons. */
function scalarOperand(): fc.Arbitrary<unknown> {
  return scalar.filter((operand) => !(operand instanceof RegExp));
}

const fields = fc.dictionary(path, condition, { maxKeys: 3 });
/** Shapes that come again and again with other values, whose plans are remembered. */
const equalities = fc.dictionary(fc.constantFrom('a', 'b', 'c', '_id'), scalar, { minKeys: 1, maxKeys: 2 });
const filter: fc.Arbitrary<object> = fc.oneof(
  { weight: 5, arbitrary: fields },
  { weight: 4, arbitrary: equalities },
  { weight: 2, arbitrary: fc.record({ $and: fc.array(fields, { minLength: 1, maxLength: 2 }) }) },
  { weight: 1, arbitrary: fc.record({ $or: fc.array(fields, { minLength: 1, maxLength: 2 }) }) },
  { weight: 4, arbitrary: fc.record({ $or: fc.array(bounded(), { minLength: 2, maxLength: 4 }) }) },
  { weight: 2, arbitrary: joined(fc.record({ $or: fc.array(bounded(), { minLength: 2, maxLength: 3 }) }), bounded()) },
  {
    weight: 1,
    arbitrary: fc.record({
      $or: fc.array(
        fc.oneof(bounded(), joined(bounded(), fc.record({ $or: fc.array(bounded(), { minLength: 2, maxLength: 2 }) }))),
        { minLength: 2, maxLength: 3 },
      ),
    }),
  },
);

/** A condition that an index may answer. */
function bounded(): fc.Arbitrary<object> {
  const operand = fc.oneof(
    { weight: 4, arbitrary: scalarOperand() },
    { weight: 2, arbitrary: fc.record({ $in: fc.array(scalarOperand(), { minLength: 1, maxLength: 4 }) }) },
    { weight: 1, arbitrary: fc.record({ $gt: scalarOperand() }) },
    { weight: 1, arbitrary: fc.constantFrom(/^a/, /^ab/) },
  );
  return fc.dictionary(path, operand, { minKeys: 1, maxKeys: 2 });
}

function joined(first: fc.Arbitrary<object>, second: fc.Arbitrary<object>): fc.Arbitrary<object> {
  return fc.tuple(first, second).map(([a, b]) => ({ $and: [a, b] }));
}

const sort = fc.dictionary(path, order, { maxKeys: 2 });
const partial = fc.constantFrom<object>(
  { a: { $exists: true } },
  { b: { $gt: 0 } },
  { a: 1 },
  { c: { $type: 'string' } },
  { b: { $gte: 1, $lt: 4 } },
);
const collation = fc.option(fc.record({ locale: fc.constant('en'), strength: fc.constantFrom<Strength>(1, 2, 3) }), {
  nil: undefined,
});
const index = fc.record(
  {
    collation,
    key: fc.dictionary(path, order, { minKeys: 1, maxKeys: 3 }).filter((key) => Object.keys(key).join() !== '_id'),
    sparse: fc.boolean(),
    partialFilterExpression: fc.option(partial, { nil: undefined }),
  },
  { requiredKeys: ['key'] },
);
const query = fc.record({
  collation,
  filter,
  sort,
  limit: fc.constantFrom(0, 0, 1, 3),
  skip: fc.constantFrom(0, 0, 2),
});
const update = fc.oneof(
  fc.record({ $set: fc.dictionary(fc.constantFrom('a', 'b', 'c'), value, { minKeys: 1, maxKeys: 2 }) }),
  fc.record({ $unset: fc.record({ a: fc.constant('') }) }),
  fc.record({ $inc: fc.record({ n: fc.integer({ min: -2, max: 2 }) }) }),
  fc.record({ $set: fc.record({ 'b.x': scalar }) }),
  fc.record({ $push: fc.record({ c: scalar }) }),
);

type Collated = { locale: string; strength: Strength } | undefined;

function collated(collation: Collated): { collation?: NonNullable<Collated> } {
  return collation === undefined ? {} : { collation };
}

describe('answers with and without indexes', () => {
  const dataDir = temporaryDir();
  const { maxSeen } = UnionScan;
  let engine: Engine;
  let db: DataDb;
  let count = 0;
  let pagesAtOnce = 0;

  beforeAll(() => {
    engine = openEngine({ dataDir, durability: 'relaxed' });
    db = engine.db('fuzz');
  });

  afterAll(async () => {
    UnionScan.maxSeen = maxSeen;
    await engine.close();
    rmSync(dataDir, { recursive: true, force: true });
  });

  async function pair(docs: readonly object[], indexes: readonly { key: object }[]): Promise<[Docs, Docs]> {
    const plain: Docs = db.collection(`plain${++count}`);
    const indexed: Docs = db.collection(`indexed${count}`);
    const early = indexes.slice(0, 2);
    for (const each of early) await create(indexed, each);
    const numbered = docs.map((each, n) => ({ ...each, _id: n }));
    await insertAll(plain, numbered);
    await insertAll(indexed, numbered);
    for (const each of indexes.slice(2)) await create(indexed, each);
    // A document that one of the indexes refuses (parallel arrays) is missing from both.
    const kept = new Set((await indexed.find().toArray()).map(({ _id }) => _id as number));
    await plain.deleteMany({ _id: { $nin: [...kept] } });
    return [plain, indexed];
  }

  async function create(
    collection: Docs,
    { key, ...options }: { key: object; [option: string]: unknown },
  ): Promise<void> {
    const both = options['sparse'] === true && options['partialFilterExpression'] !== undefined;
    const given = Object.fromEntries(
      Object.entries(options).filter(([name, option]) => option !== undefined && !(both && name === 'sparse')),
    );
    // The same key twice, or documents with parallel arrays: this index is not there then.
    await collection.createIndex(key as never, { ...given, name: `i${++indexes}` }).catch((error: unknown) => {
      if (![85, 86, 171].includes((error as { code: number }).code)) throw error;
    });
  }

  async function insertAll(collection: Docs, docs: readonly object[]): Promise<void> {
    if (docs.length === 0) return;
    await collection.insertMany([...docs], { ordered: false }).catch((error: unknown) => {
      if ((error as { code: number }).code !== 171) throw error;
    });
  }

  it('are the same documents, in the same order, and as many', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(doc, { maxLength: 40 }),
        fc.array(index, { minLength: 1, maxLength: 4 }),
        fc.array(query, { minLength: QUERIES_PER_COLLECTION, maxLength: QUERIES_PER_COLLECTION }),
        async (docs, indexes, queries) => {
          const [plain, indexed] = await pair(docs, indexes);
          for (const [n, each] of queries.entries()) {
            // Every other query can remember but two documents.
            UnionScan.maxSeen = n % 2 === 0 ? maxSeen : 2;
            await expectSame(plain, indexed, each);
          }
          await plain.drop();
          await indexed.drop();
        },
      ),
      { numRuns: RUNS, seed: SEED },
    );
  });

  it('come in pages at once too', () => expect(pagesAtOnce).toBeGreaterThan(RUNS / 2));

  it('stay the same after updates and deletes, and the indexes hold exactly the documents', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(doc, { maxLength: 30 }),
        fc.array(index, { minLength: 1, maxLength: 3 }),
        fc.array(fc.record({ collation, filter, update, kind: fc.constantFrom('many', 'one', 'delete') }), {
          minLength: 4,
          maxLength: 8,
        }),
        async (docs, indexes, changes) => {
          const [plain, indexed] = await pair(docs, indexes);
          for (const change of changes) {
            const outcome = await applyTo(indexed, change);
            const expected = await applyTo(plain, change);
            // An index may refuse a change (171) that the plain collection takes: then they have to be made equal.
            if (outcome === 171) {
              await plain.deleteMany({});
              await insertAll(plain, await indexed.find().toArray());
            } else {
              expect(outcome).toEqual(expected);
            }
            expect(await indexed.find().sort({ _id: 1 }).toArray()).toEqual(
              await plain.find().sort({ _id: 1 }).toArray(),
            );
          }
          expect(await engine.verify()).toEqual([]);
          await plain.drop();
          await indexed.drop();
        },
      ),
      { numRuns: RUNS, seed: SEED },
    );
  });

  /** The counts of a change, or the code of its refusal. */
  async function applyTo(
    collection: Docs,
    change: { filter: object; update: object; kind: string; collation: Collated },
  ): Promise<unknown> {
    const options = collated(change.collation);
    try {
      if (change.kind === 'delete') return await collection.deleteMany(change.filter, options);
      // Which one is changed must not depend on the index: the first by _id is taken.
      if (change.kind === 'one') {
        return await collection.findOneAndUpdate(change.filter, change.update, { sort: { _id: 1 }, ...options });
      }
      return await collection.updateMany(change.filter, change.update, options);
    } catch (error) {
      const { code } = error as { code?: number };
      if (code === undefined) throw error;
      return code;
    }
  }

  async function expectSame(
    plain: Docs,
    indexed: Docs,
    {
      filter,
      sort,
      limit,
      skip,
      collation,
    }: { filter: object; sort: Record<string, number>; limit: number; skip: number; collation: Collated },
  ): Promise<void> {
    const options = collated(collation);
    const compared = collation === undefined ? null : collationOf('en', collation.strength);
    const read = (collection: Docs, filter: object) =>
      collection.find(filter, { sort: sort as never, limit, skip, ...options }).toArray();
    const all = await collectOrCode(() => plain.find(filter, options).sort({ _id: 1 }).toArray());
    expect(await collectOrCode(() => indexed.find(filter, options).sort({ _id: 1 }).toArray())).toEqual(all);
    if (typeof all === 'number') return;
    expect(await indexed.countDocuments(filter, options)).toBe(all.length);
    const key = Object.keys(sort)[0] ?? 'a';
    const [values, plainValues] = [
      await indexed.distinct(key, filter, options),
      await plain.distinct(key, filter, options),
    ];
    // Which of several equal values stands for them is open.
    expect(values.length).toBe(plainValues.length);
    values.forEach((each, n) => {
      const [left, right] = [each, plainValues[n]].map((one: unknown) => {
        const given = docFromApp({ one })['one'];
        return compared === null ? given : compared.fold(given);
      });
      expect(compareValues(left, right)).toBe(0);
    });
    const batches = await collectOrCode(() =>
      indexed
        .find(filter, { sort: sort as never, batchSize: 2, ...options })
        .toArray()
        .then((docs) => docs.sort((a, b) => (a as { _id: number })._id - (b as { _id: number })._id)),
    );
    if (typeof batches !== 'number') expect(batches).toEqual(all);
    const expected = await collectOrCode(() => read(plain, filter));
    const found = await collectOrCode(() => read(indexed, filter));
    if (typeof expected === 'number' || typeof found === 'number') {
      // Whether a sort meets parallel arrays may depend on how many documents had to be looked at.
      expect([found, expected]).toContain(2);
      return;
    }
    if (collation === undefined && limit > 0) {
      const asked = { filter: { ...filter }, sort: sort as Record<string, 1 | -1>, skip, limit, mostBytes: 1e6 };
      const page = db.findPage(indexed.collectionName, asked);
      // What a find of the same and a count answer, where it answers at once.
      if (page !== undefined) {
        const rows = await indexed.find(filter, { sort: sort as never, limit, skip, raw: true }).toArray();
        expect({ ...page, asked }).toEqual({ rows, total: all.length, asked });
        pagesAtOnce++;
      }
    }
    // Documents that sort equally may come in any order: what is compared is the sequence of their sort keys.
    if (Object.keys(sort).length === 0) {
      expect(found).toHaveLength(expected.length);
      return;
    }
    const { keysOf } = compileSort(docFromApp(sort), compared);
    expect(found).toHaveLength(expected.length);
    // A single document is not sorted, so nobody has noticed yet that its parallel arrays cannot be.
    if (found.length === 1) return;
    found.forEach((each, n) => {
      const left = keysOf(docFromApp(each));
      const right = keysOf(docFromApp(expected[n]!));
      expect(left.map((key, i) => compareValues(key, right[i]))).toEqual(left.map(() => 0));
    });
  }

  async function collectOrCode(read: () => Promise<object[]>): Promise<object[] | number> {
    try {
      return await read();
    } catch (error) {
      const { code } = error as { code?: number };
      if (code === undefined) throw error;
      return code;
    }
  }
});
