import { rmSync } from 'node:fs';
import { deserialize, ObjectId } from 'bson';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { openEngine } from '../index.js';
import { temporaryDir } from './transports.js';

const dataDir = temporaryDir();
const engine = openEngine({ dataDir });
const items = engine.db('test').collection('items');
const first = new ObjectId();
const second = new ObjectId();
const at = new Date(1_700_000_000_000);

beforeAll(async () => {
  await items.insertMany([
    { _id: first, state: 'open', isDeleted: false, n: 1, at, tags: ['a', 'b'] },
    { _id: second, state: 'done', isDeleted: true, n: 2.5, at: null },
    { _id: 'text', state: 'open', n: 3 },
    { _id: 7, state: ['open', 'done'], isDeleted: false },
  ] as never[]);
});
afterAll(async () => {
  await engine.close();
  rmSync(dataDir, { recursive: true });
});

describe('findOne by an _id', () => {
  const ids: unknown[] = [first, second, 'text', 7, 7.5, 'none', new ObjectId(), null];
  const others: object[] = [
    {},
    { state: 'open' },
    { state: 'done' },
    { isDeleted: false },
    { isDeleted: true, state: 'done' },
    { n: 2.5 },
    { at },
    { at: null },
    { tags: 'b' },
    { missing: null },
    { n: { $gt: 1 } },
  ];
  const forms: ((id: unknown, other: object) => object)[] = [
    (id, other) => ({ _id: id, ...other }),
    (id, other) => ({ ...other, _id: { $eq: id } }),
    (id, other) => ({ $and: [{ ...other }, { _id: id }].filter((part) => Object.keys(part).length > 0) }),
    (id, other) => ({ _id: id, $and: [{ _id: first, ...other }] }),
    (id, other) => ({ ...other, _id: { $in: [id, second] } }),
  ];

  it('answers what a search for one document finds, whatever else is asked of it', async () => {
    let found = 0;
    for (const id of ids) {
      for (const other of others) {
        for (const form of forms) {
          const filter = form(id, other) as never;
          const [searched = null] = await items.find(filter).sort({ _id: 1 }).limit(1).toArray();
          const one = await items.findOne(filter, { sort: { _id: 1 } });
          const point = await items.findOne(filter);
          expect(one, JSON.stringify(filter)).toEqual(searched);
          // Of several the first that is met is as good.
          if (!JSON.stringify(filter).includes('$in')) expect(point, JSON.stringify(filter)).toEqual(searched);
          if (point) found++;
        }
      }
    }
    expect(found).toBeGreaterThan(40);
  });

  it('answers the bytes where they are asked for, and a part where a part is', async () => {
    const raw = (await items.findOne({ _id: first } as never, { raw: true })) as unknown as Buffer;
    expect(Buffer.isBuffer(raw)).toBe(true);
    const other = (await items.findOne({ _id: second } as never, { raw: true })) as unknown as Buffer;
    // Of its own: a later read leaves it as it is.
    expect(raw.equals(other)).toBe(false);
    expect(await items.findOne({ _id: first } as never, { projection: { n: 1 } })).toEqual({ _id: first, n: 1 });
    expect(await items.findOne({ _id: first } as never, { skip: 1 })).toBeNull();
  });

  it('finds documents whose _id is longer than a key', async () => {
    const long = 'x'.repeat(3_000);
    const things = engine.db('test').collection('long');
    await things.insertMany([{ _id: `${long}a` }, { _id: `${long}b`, n: 1 }, { _id: 'short', n: 2 }] as never[]);
    expect(await things.findOne({ _id: `${long}b` } as never)).toEqual({ _id: `${long}b`, n: 1 });
    expect(await things.findOne({ _id: 'short', n: 2 } as never)).toEqual({ _id: 'short', n: 2 });
    expect(await things.findOne({ _id: `${long}c` } as never)).toBeNull();
  });
});

describe('a page that is read at once', () => {
  const asked = {
    filter: { _id: { $in: [first, second, 7] } },
    sort: { _id: 1 },
    skip: 0,
    limit: 2,
    mostBytes: 1_000,
  } as const;

  it('is the documents and how many there are in all', () => {
    const page = engine.db('test').findPage('items', asked)!;
    expect(page.rows.map((row) => deserialize(row)['_id'] as unknown)).toEqual([7, first]);
    expect(page.total).toBe(3);
    expect(engine.db('test').findPage('items', { ...asked, skip: 2 })!.total).toBe(3);
    expect(engine.db('test').findPage('nothing', asked)).toEqual({ rows: [], total: 0 });
  });

  it('is none where its documents have more bytes than asked for', () => {
    expect(engine.db('test').findPage('items', { ...asked, mostBytes: 100 })).toBeUndefined();
  });

  it('is none where more is looked at than in one turn', async () => {
    const many = engine.db('test').collection('many');
    await many.insertMany(Array.from({ length: 3_000 }, (_, n) => ({ n })));
    const missing = { ...asked, filter: { n: -1 } };
    expect(engine.db('test').findPage('many', missing)).toBeUndefined();
    expect(await many.countDocuments({ n: -1 })).toBe(0);
  });

  it('is refused as a find is', () => {
    expect(() => engine.db('test').findPage('items', { ...asked, filter: { $foo: 1 } })).toThrow(/\$foo/);
  });
});
