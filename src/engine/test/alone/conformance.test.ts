import { randomUUID } from 'node:crypto';
import {
  Binary,
  DBRef,
  Decimal128,
  Double,
  Int32,
  Long,
  MaxKey,
  MinKey,
  MongoBulkWriteError,
  MongoServerError,
  ObjectId,
  type Sort,
  Timestamp,
  UUID,
} from 'mongodb';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { type DataCollection, type DataDb } from '../../index.js';
import { TRANSPORTS, type OpenTransport } from '../transports.js';

// oxlint-disable-next-line typescript/no-explicit-any -- documents of any shape, with an _id of any type
type Items = DataCollection<any>;

describe.each(TRANSPORTS)('$name', ({ open, foreign }) => {
  let transport: OpenTransport;
  let db: DataDb;
  let items: Items;

  beforeAll(async () => {
    transport = await open();
    db = transport.db(`conformance_${randomUUID().slice(0, 8)}`);
  });

  afterAll(async () => {
    await db.dropDatabase();
    await transport.close();
  });

  beforeEach(async () => {
    items = db.collection(`items_${randomUUID().slice(0, 8)}`);
    await db.createCollection(items.collectionName);
  });

  async function numbered(count: number): Promise<void> {
    await items.insertMany(Array.from({ length: count }, (_, n) => ({ _id: n, n, parity: n % 2 })));
  }

  describe('insertOne', () => {
    it('makes an ObjectId and sets it on the given object', async () => {
      const doc: { name: string; _id?: ObjectId } = { name: 'a' };
      const { insertedId, acknowledged } = await items.insertOne(doc);
      expect(acknowledged).toBe(true);
      expect(insertedId).toBeInstanceOf(ObjectId);
      expect(doc._id).toBe(insertedId);
      expect(await items.findOne({ _id: insertedId })).toEqual({ _id: insertedId, name: 'a' });
    });

    it('refuses a second document with the same _id with 11000, keyPattern and keyValue', async () => {
      await items.insertOne({ _id: 'x' });
      const error = await items.insertOne({ _id: 'x' }).catch((thrown: unknown) => thrown);
      expect(error).toBeInstanceOf(MongoServerError);
      expect(error).toMatchObject({ code: 11000, keyPattern: { _id: 1 }, keyValue: { _id: 'x' } });
      expect((error as Error).message).toContain('E11000 duplicate key error collection:');
      expect((error as Error).message).toContain('index: _id_ dup key: { _id: "x" }');
    });

    it('takes 1 and 1.0 for the same _id, and keeps "1" apart', async () => {
      await items.insertOne({ _id: 1 });
      await expect(items.insertOne({ _id: new Double(1) })).rejects.toMatchObject({ code: 11000 });
      await expect(items.insertOne({ _id: Long.fromNumber(1) })).rejects.toMatchObject({ code: 11000 });
      await items.insertOne({ _id: '1' });
      expect(await items.countDocuments()).toBe(2);
    });

    it('refuses an array as _id', async () => {
      await expect(items.insertOne({ _id: [1] })).rejects.toThrow(/array/);
    });

    it('stores every type and gives it back as the driver promotes it', async () => {
      const doc = {
        _id: new ObjectId(),
        text: 'é😀\u0000z',
        int: 1,
        double: 1.5,
        whole: new Double(5),
        negativeZero: -0,
        long: Long.fromString('9007199254740993'),
        smallLong: Long.fromNumber(7),
        int32: new Int32(3),
        decimal: Decimal128.fromString('1.10'),
        yes: true,
        none: null,
        date: new Date('2020-01-02T03:04:05.678Z'),
        early: new Date(-1),
        bytes: new Binary(Buffer.from([1, 2, 3])),
        uuid: new UUID('00112233-4455-6677-8899-aabbccddeeff'),
        regex: /a.c/i,
        stamp: new Timestamp({ t: 5, i: 6 }),
        min: new MinKey(),
        max: new MaxKey(),
        list: [1, 'a', [2], { b: null }],
        inner: { a: { b: { c: [] } }, empty: {} },
      };
      await items.insertOne(doc);
      const found = await items.findOne({ _id: doc._id });
      expect(found).toEqual({ ...doc, whole: 5, smallLong: 7, int32: 3 });
      expect(Object.keys(found!)).toEqual(Object.keys(doc));
      expect(Object.is(found!['negativeZero'], -0)).toBe(true);
    });

    it('keeps __proto__ as a field of its own', async () => {
      const doc = JSON.parse('{"_id":1,"__proto__":{"admin":true},"constructor":1}') as Record<string, unknown>;
      await items.insertOne(doc);
      const found = await items.findOne({ _id: 1 });
      expect(Object.hasOwn(found!, '__proto__')).toBe(true);
      expect((found as { admin?: boolean }).admin).toBeUndefined();
      expect(found!['constructor']).toBe(1);
    });

    it('refuses documents over 16 MB', async () => {
      await expect(items.insertOne({ text: 'x'.repeat(16 * 1024 * 1024) })).rejects.toThrow();
      expect(await items.countDocuments()).toBe(0);
    });
  });

  describe('insertMany', () => {
    it('stops at the first refused document when ordered', async () => {
      const error = await items.insertMany([{ _id: 1 }, { _id: 1 }, { _id: 2 }]).catch((thrown: unknown) => thrown);
      expect(error).toBeInstanceOf(MongoBulkWriteError);
      expect(error).toMatchObject({ code: 11000, insertedCount: 1, result: { insertedIds: { 0: 1 } } });
      expect((error as MongoBulkWriteError).writeErrors).toMatchObject([{ index: 1, code: 11000 }]);
      expect(await items.distinct('_id')).toEqual([1]);
    });

    it('goes on behind refused documents when not ordered', async () => {
      const docs = [{ _id: 1 }, { _id: 1 }, { _id: 2 }, { _id: 2 }, { _id: 3 }];
      const error = await items.insertMany(docs, { ordered: false }).catch((thrown: unknown) => thrown);
      expect(error).toMatchObject({ insertedCount: 3 });
      expect((error as { writeErrors: { index: number }[] }).writeErrors.map(({ index }) => index)).toEqual([1, 3]);
      expect(await items.distinct('_id')).toEqual([1, 2, 3]);
    });

    it('answers with the ids by position', async () => {
      const { insertedCount, insertedIds } = await items.insertMany([{ _id: 'a' }, { _id: 'b' }]);
      expect(insertedCount).toBe(2);
      expect(insertedIds).toEqual({ 0: 'a', 1: 'b' });
    });
  });

  describe('find', () => {
    it('sorts, skips, limits and projects', async () => {
      await numbered(20);
      const found = await items
        .find({ parity: 1 })
        .sort({ n: -1 })
        .skip(2)
        .limit(3)
        .project({ _id: 0, n: 1 })
        .toArray();
      expect(found).toEqual([{ n: 15 }, { n: 13 }, { n: 11 }]);
    });

    it('accepts the driver’s ways to write a sort', async () => {
      await numbered(5);
      const last = async (sort: Sort): Promise<unknown> =>
        (await items.find({}, { sort: sort }).limit(1).toArray())[0]!._id;
      expect(await last({ n: -1 })).toBe(4);
      expect(await last({ n: 'desc' })).toBe(4);
      expect(await last([['n', -1]])).toBe(4);
      expect(await last(new Map([['n', -1]]))).toBe(4);
      expect(await last('n')).toBe(0);
    });

    it('walks a result larger than one batch, in every way', async () => {
      await numbered(500);
      const ids: unknown[] = [];
      for await (const doc of items.find({}, { batchSize: 7 })) ids.push(doc._id);
      expect(ids).toEqual(Array.from({ length: 500 }, (_, n) => n));
      const cursor = items.find({}, { batchSize: 50 }).sort({ n: -1 });
      expect(await cursor.hasNext()).toBe(true);
      expect(await cursor.next()).toMatchObject({ n: 499 });
      expect(await cursor.tryNext()).toMatchObject({ n: 498 });
      expect(await cursor.toArray()).toHaveLength(498);
      expect(await cursor.next()).toBeNull();
      let visited = 0;
      await items.find().forEach(() => {
        visited++;
        return visited < 10;
      });
      expect(visited).toBe(10);
    });

    it('goes on beside writes that happen between two batches', async () => {
      await numbered(50);
      const cursor = items.find({}, { batchSize: 10, sort: { _id: 1 } });
      for (let n = 0; n < 10; n++) await cursor.next();
      await items.deleteMany({ n: { $gte: 20, $lt: 30 } });
      const rest = await cursor.toArray();
      expect(rest.map((doc) => doc['n'])).toEqual(expect.arrayContaining([10, 19, 30, 49]));
      await cursor.close();
    });

    it('gives stored bytes with raw', async () => {
      await items.insertOne({ _id: 1, a: 'x' });
      const [raw] = (await items.find({}, { raw: true }).toArray()) as unknown as Buffer[];
      expect(Buffer.isBuffer(raw)).toBe(true);
      expect(raw!.readInt32LE(0)).toBe(raw!.length);
    });

    it('is empty for a collection that does not exist', async () => {
      expect(await db.collection('nowhere').find().toArray()).toEqual([]);
      expect(await db.collection('nowhere').findOne()).toBeNull();
      expect(await db.collection('nowhere').countDocuments({ a: 1 })).toBe(0);
    });

    it('refuses unknown operators with 2', async () => {
      await items.insertOne({ a: 1 });
      await expect(items.find({ a: { $nope: 1 } } as never).toArray()).rejects.toMatchObject({ code: 2 });
      await expect(items.find({ $nope: 1 } as never).toArray()).rejects.toMatchObject({ code: 2 });
    });

    it('compares values of different types in BSON order', async () => {
      const values = [
        new MinKey(),
        null,
        5,
        'a',
        { a: 1 },
        new Binary(Buffer.from('b')),
        new ObjectId(),
        true,
        new Date(1),
        new MaxKey(),
      ];
      await items.insertMany(values.map((v, n) => ({ _id: n, v })).reverse());
      expect((await items.find().sort({ v: 1 }).toArray()).map((doc) => doc._id)).toEqual(values.map((_, n) => n));
      await items.createIndex({ v: 1 });
      expect((await items.find().sort({ v: 1 }).toArray()).map((doc) => doc._id)).toEqual(values.map((_, n) => n));
    });

    it('does not read a query by the plan of another one whose names and nulls spell the same', async () => {
      await items.createIndex({ a: 1, nb: 1 });
      await items.insertMany([
        { _id: 1, a: 1, nb: 1 },
        { _id: 2, a: null, b: 1 },
        { _id: 3, a: null, nb: 1 },
      ]);
      expect((await items.find({ a: 1, nb: 1 }).toArray()).map((doc) => doc._id)).toEqual([1]);
      expect((await items.find({ a: null, b: 1 }).toArray()).map((doc) => doc._id)).toEqual([2]);
    });

    it('uses a hint and refuses an unknown one', async () => {
      await numbered(10);
      await items.createIndex({ n: 1 });
      expect(
        await items
          .find({ n: { $gte: 8 } })
          .hint('n_1')
          .toArray(),
      ).toHaveLength(2);
      expect(
        await items
          .find({ n: { $gte: 8 } })
          .hint({ n: 1 })
          .toArray(),
      ).toHaveLength(2);
      await expect(items.find({}).hint('nope_1').toArray()).rejects.toMatchObject({ code: 2 });
      const backwards = await items.find({}).hint({ $natural: -1 }).limit(1).toArray();
      expect(backwards[0]!._id).toBe(9);
    });

    it('takes a stored field named _bsontype for data, with an index and without', async () => {
      // A plain object with that field is refused before it is sent; a Map is not.
      const told = new Map<string, unknown>([
        ['_bsontype', 'ObjectId'],
        ['b', 1],
      ]);
      await items.insertOne({ _id: 1, a: told });
      const find = async (filter: object): Promise<unknown[]> => items.find(filter).project({ _id: 1 }).toArray();
      for (const indexed of [false, true]) {
        if (indexed) await items.createIndexes([{ key: { a: 1 } }, { key: { 'a.b': 1 } }]);
        expect(await find({ 'a.b': 1 })).toEqual([{ _id: 1 }]);
        expect(await find({ a: { $type: 'object' } })).toEqual([{ _id: 1 }]);
        expect(await find({ 'a._bsontype': 'ObjectId' })).toEqual([{ _id: 1 }]);
      }
      expect((await items.updateOne({ _id: 1 }, { $set: { c: 2 } })).modifiedCount).toBe(1);
    });

    it('takes a DBRef for the document it is sent as, in filters, pipelines, updates and indexes', async () => {
      const id = new ObjectId();
      const reference = new DBRef('authors', id, 'library', { since: 1 });
      const fields = { $ref: 'authors', $id: id, $db: 'library', since: 1 };
      await items.insertMany([
        { _id: 1, author: reference, list: [reference] },
        { _id: 2, author: fields, list: [] },
        { _id: 3, author: new DBRef('authors', id), list: [] },
      ]);
      const idsOf = async (filter: object): Promise<unknown[]> =>
        (await items.find(filter).sort({ _id: 1 }).toArray()).map((doc) => doc._id as unknown);
      for (const author of [reference, fields]) {
        expect(await idsOf({ author })).toEqual([1, 2]);
        expect(await idsOf({ author: { $in: [author] } })).toEqual([1, 2]);
        expect(await idsOf({ author: { $ne: author } })).toEqual([3]);
        expect(await idsOf({ list: author })).toEqual([1]);
        expect(await items.aggregate([{ $match: { author } }, { $count: 'n' }]).toArray()).toEqual([{ n: 2 }]);
      }
      await items.createIndex({ author: 1 });
      expect(await idsOf({ author: reference })).toEqual([1, 2]);
      expect(await idsOf({ 'author.$id': id })).toEqual([1, 2, 3]);
      await items.updateOne({ _id: 3 }, { $set: { author: reference }, $addToSet: { list: reference } });
      await items.updateOne({ _id: 1 }, { $addToSet: { list: fields } });
      expect(await idsOf({ author: fields })).toEqual([1, 2, 3]);
      expect(await idsOf({ list: { $size: 1 } })).toEqual([1, 3]);
      expect(await items.aggregate([{ $group: { _id: { $type: '$author' } } }]).toArray()).toEqual([{ _id: 'object' }]);
    });
  });

  describe('updates', () => {
    it('counts what matched and what changed', async () => {
      await numbered(4);
      expect(await items.updateOne({ n: 1 }, { $set: { n: 1 } })).toMatchObject({ matchedCount: 1, modifiedCount: 0 });
      expect(await items.updateOne({ n: 1 }, { $inc: { n: 10 } })).toMatchObject({ matchedCount: 1, modifiedCount: 1 });
      expect(await items.updateMany({ parity: 0 }, { $set: { seen: true } })).toMatchObject({
        matchedCount: 2,
        modifiedCount: 2,
      });
      expect(await items.updateOne({ n: 'no' }, { $set: { a: 1 } })).toMatchObject({
        matchedCount: 0,
        upsertedId: null,
      });
    });

    it('upserts with the equalities of the filter', async () => {
      const result = await items.updateOne(
        { kind: 'a', n: { $gt: 5 } },
        { $set: { v: 1 }, $setOnInsert: { made: true } },
        { upsert: true },
      );
      expect(result).toMatchObject({ matchedCount: 0, upsertedCount: 1 });
      expect(await items.findOne()).toEqual({ _id: result.upsertedId, kind: 'a', v: 1, made: true });
      expect(await items.updateOne({ _id: 'own' }, { $set: { v: 2 } }, { upsert: true })).toMatchObject({
        upsertedId: 'own',
      });
      expect(await items.updateMany({ _id: 'many' }, { $set: { v: 2 } }, { upsert: true })).toMatchObject({
        upsertedCount: 1,
      });
    });

    it('changes each document of an updateMany once, even when it moves ahead in the index that is read', async () => {
      await items.createIndex({ n: 1 });
      await items.insertMany(Array.from({ length: 300 }, (_, n) => ({ _id: n, n })));
      const result = await items.updateMany({ n: { $gte: 0 } }, { $inc: { n: 100_000 } });
      expect(result).toMatchObject({ matchedCount: 300, modifiedCount: 300 });
      expect(await items.countDocuments({ n: { $gte: 100_000, $lt: 100_300 } })).toBe(300);
    });

    it('replaces a document but not its _id', async () => {
      await items.insertOne({ _id: 1, a: 1, b: 2 });
      await items.replaceOne({ _id: 1 }, { c: 3 });
      expect(await items.findOne()).toEqual({ _id: 1, c: 3 });
      await expect(items.updateOne({ _id: 1 }, { $set: { _id: 2 } })).rejects.toMatchObject({ code: 66 });
      await expect(items.updateOne({ _id: 1 }, { a: 1 } as never)).rejects.toThrow('atomic operators');
      await expect(items.replaceOne({ _id: 1 }, { $set: { a: 1 } } as never)).rejects.toThrow('atomic operators');
    });

    it('takes a pipeline, array filters and positions', async () => {
      await items.insertOne({
        _id: 1,
        list: [
          { k: 1, v: 1 },
          { k: 2, v: 2 },
        ],
      });
      await items.updateOne({ 'list.k': 2 }, { $set: { 'list.$.v': 20 } });
      await items.updateOne({ _id: 1 }, { $inc: { 'list.$[low].v': 100 } }, { arrayFilters: [{ 'low.k': 1 }] });
      await items.updateOne({ _id: 1 }, [{ $set: { total: { $sum: '$list.v' } } }]);
      expect(await items.findOne()).toEqual({
        _id: 1,
        list: [
          { k: 1, v: 101 },
          { k: 2, v: 20 },
        ],
        total: 121,
      });
    });

    it('moves a document between unique values and refuses taken ones', async () => {
      await items.createIndex({ email: 1 }, { unique: true });
      await items.insertMany([
        { _id: 1, email: 'a' },
        { _id: 2, email: 'b' },
      ]);
      const taken = items.updateOne({ _id: 2 }, { $set: { email: 'a' } });
      await expect(taken).rejects.toMatchObject({ code: 11000, keyPattern: { email: 1 }, keyValue: { email: 'a' } });
      await items.updateOne({ _id: 1 }, { $set: { email: 'c' } });
      await items.updateOne({ _id: 2 }, { $set: { email: 'a' } });
      expect(await items.find().sort({ _id: 1 }).toArray()).toMatchObject([{ email: 'c' }, { email: 'a' }]);
    });
  });

  describe('findOneAnd...', () => {
    it('gives the document before or after the change', async () => {
      await items.insertOne({ _id: 1, n: 1, other: 'x' });
      expect(await items.findOneAndUpdate({ _id: 1 }, { $inc: { n: 1 } })).toMatchObject({ n: 1 });
      const after = await items.findOneAndUpdate(
        { _id: 1 },
        { $inc: { n: 1 } },
        { returnDocument: 'after', projection: { n: 1, _id: 0 } },
      );
      expect(after).toEqual({ n: 3 });
      expect(await items.findOneAndReplace({ _id: 1 }, { z: 1 }, { returnDocument: 'after' })).toEqual({
        _id: 1,
        z: 1,
      });
      expect(await items.findOneAndDelete({ _id: 1 })).toEqual({ _id: 1, z: 1 });
      expect(await items.findOneAndDelete({ _id: 1 })).toBeNull();
    });

    it('upserts and says so in the metadata', async () => {
      const result = await items.findOneAndUpdate(
        { _id: 'new' },
        { $set: { a: 1 } },
        { upsert: true, returnDocument: 'after', includeResultMetadata: true },
      );
      expect(result).toMatchObject({
        value: { _id: 'new', a: 1 },
        lastErrorObject: { n: 1, updatedExisting: false, upserted: 'new' },
      });
    });

    it('gives every waiting document to one taker only', async () => {
      await items.createIndex({ state: 1, due: 1 });
      await items.insertMany(Array.from({ length: 60 }, (_, n) => ({ _id: n, state: 'waiting', due: n })));
      const take = () =>
        items.findOneAndUpdate({ state: 'waiting' }, { $set: { state: 'taken' } }, { sort: { due: 1 } });
      const taken = await Promise.all(Array.from({ length: 80 }, take));
      const ids = taken.filter((doc) => doc !== null).map((doc) => doc._id);
      expect(new Set(ids).size).toBe(60);
      expect(taken.filter((doc) => doc === null)).toHaveLength(20);
    });

    it('takes the first by a sort that no index has', async () => {
      await numbered(20);
      expect(await items.findOneAndDelete({ parity: 1 }, { sort: { n: -1 } })).toMatchObject({ n: 19 });
    });
  });

  describe('deletes', () => {
    it('deletes one or all', async () => {
      await numbered(10);
      expect(await items.deleteOne({ parity: 0 })).toEqual({ acknowledged: true, deletedCount: 1 });
      expect(await items.deleteMany({ parity: 0 })).toEqual({ acknowledged: true, deletedCount: 4 });
      expect(await items.deleteMany({})).toMatchObject({ deletedCount: 5 });
      expect(await items.countDocuments()).toBe(0);
    });
  });

  describe('bulkWrite', () => {
    it('refuses updates without operators and replacements with them', async () => {
      const update = { a: 1 } as never;
      const operations = [
        { updateOne: { filter: {}, update } },
        { updateMany: { filter: {}, update } },
        { replaceOne: { filter: {}, replacement: { $set: { a: 1 } } as never } },
      ];
      await items.insertOne({ _id: 1, b: 1 });
      for (const operation of operations) {
        await expect((async () => items.bulkWrite([operation]))()).rejects.toThrow('atomic operators');
      }
      expect(await items.findOne()).toEqual({ _id: 1, b: 1 });
    });

    it('runs mixed operations in order', async () => {
      const result = await items.bulkWrite([
        { insertOne: { document: { _id: 1, n: 1 } } },
        { insertOne: { document: { _id: 2, n: 2 } } },
        { updateOne: { filter: { _id: 1 }, update: { $inc: { n: 10 } } } },
        { updateMany: { filter: {}, update: { $set: { seen: true } } } },
        { replaceOne: { filter: { _id: 3 }, replacement: { n: 3 }, upsert: true } },
        { deleteOne: { filter: { _id: 2 } } },
        { deleteMany: { filter: { n: 99 } } },
      ]);
      expect(result).toMatchObject({
        insertedCount: 2,
        matchedCount: 3,
        modifiedCount: 3,
        deletedCount: 1,
        upsertedCount: 1,
        upsertedIds: { 4: 3 },
        insertedIds: { 0: 1, 1: 2 },
      });
      expect(await items.find().sort({ _id: 1 }).toArray()).toEqual([
        { _id: 1, n: 11, seen: true },
        { _id: 3, n: 3 },
      ]);
    });

    it('tells which operation was refused', async () => {
      const error = await items
        .bulkWrite([
          { insertOne: { document: { _id: 1 } } },
          { insertOne: { document: { _id: 1 } } },
          { deleteMany: { filter: {} } },
        ])
        .catch((thrown: unknown) => thrown);
      expect(error).toBeInstanceOf(MongoBulkWriteError);
      expect(error).toMatchObject({ code: 11000, insertedCount: 1, deletedCount: 0 });
      expect((error as MongoBulkWriteError).writeErrors).toMatchObject([{ index: 1 }]);
    });
  });

  describe('counting and distinct', () => {
    it('counts all, by filter, with limit and skip', async () => {
      await numbered(30);
      expect(await items.countDocuments()).toBe(30);
      expect(await items.countDocuments({ n: { $lt: 7 } })).toBe(7);
      expect(await items.countDocuments({}, { limit: 4, skip: 28 })).toBe(2);
      expect(await items.estimatedDocumentCount()).toBe(30);
      await items.createIndex({ parity: 1, n: 1 });
      expect(await items.countDocuments({ parity: 1 })).toBe(15);
      expect(await items.countDocuments({ parity: 1, n: { $gt: 9, $lte: 13 } })).toBe(2);
      expect(await items.countDocuments({ parity: 1, n: { $gt: 9 }, _id: 11 })).toBe(1);
    });

    it('lists distinct values, those of arrays one by one', async () => {
      await items.insertMany([{ v: 1 }, { v: new Double(1) }, { v: [2, 3] }, { v: 'a' }, { w: 1 }, { v: null }]);
      expect(await items.distinct('v')).toEqual(expect.arrayContaining([1, 2, 3, 'a', null]));
      expect(await items.distinct('v')).toHaveLength(5);
      expect(await items.distinct('v', { v: { $gt: 1 } })).toEqual([2, 3]);
    });
  });

  describe('indexes', () => {
    it('creates, lists and drops them', async () => {
      expect(await items.createIndex({ a: 1, b: -1 })).toBe('a_1_b_-1');
      expect(await items.createIndex({ a: 1, b: -1 })).toBe('a_1_b_-1');
      const options = { unique: true, partialFilterExpression: { c: { $exists: true } }, name: 'own' };
      expect(await items.createIndex({ c: 1 }, options)).toBe('own');
      expect(await items.indexes()).toMatchObject([
        { name: '_id_', key: { _id: 1 } },
        { name: 'a_1_b_-1', key: { a: 1, b: -1 } },
        { name: 'own', key: { c: 1 }, unique: true, partialFilterExpression: { c: { $exists: true } } },
      ]);
      expect(await items.indexExists(['own', '_id_'])).toBe(true);
      await items.dropIndex('own');
      await expect(items.dropIndex('own')).rejects.toMatchObject({ code: 27 });
      await expect(items.dropIndex('_id_')).rejects.toMatchObject({ code: 72 });
      await items.dropIndexes();
      expect(await items.listIndexes().toArray()).toHaveLength(1);
    });

    it('refuses other options under the same name, and another name for the same index', async () => {
      await items.createIndex({ a: 1 });
      await expect(items.createIndex({ a: 1 }, { unique: true })).rejects.toMatchObject({ code: 86 });
      await expect(items.createIndex({ b: 1 }, { name: 'a_1' })).rejects.toMatchObject({ code: 86 });
      await expect(items.createIndex({ a: 1 }, { name: 'other' })).rejects.toMatchObject({ code: 85 });
    });

    it('refuses to build a unique index over equal values and leaves nothing behind', async () => {
      await items.insertMany([{ a: 1 }, { a: 2 }, { a: 1 }]);
      await expect(items.createIndex({ a: 1 }, { unique: true })).rejects.toMatchObject({ code: 11000 });
      expect(await items.indexes()).toHaveLength(1);
      await items.insertOne({ a: 2 });
    });

    it('lets a unique index hold a missing value once, a partial or sparse one any number', async () => {
      await items.createIndex({ a: 1 }, { unique: true });
      await items.insertOne({});
      await expect(items.insertOne({})).rejects.toMatchObject({ code: 11000, keyValue: { a: null } });
      await items.dropIndexes();
      await items.createIndex({ a: 1 }, { unique: true, sparse: true });
      await items.insertMany([{}, {}, { a: 1 }]);
      await expect(items.insertOne({ a: 1 })).rejects.toMatchObject({ code: 11000 });
      await items.createIndex({ b: 1 }, { unique: true, partialFilterExpression: { live: true } });
      await items.insertMany([{ b: 1 }, { b: 1 }, { b: 1, live: true }]);
      await expect(items.insertOne({ b: 1, live: true })).rejects.toMatchObject({ code: 11000 });
      await items.updateOne({ b: 1, live: true }, { $set: { live: false } });
      await items.insertOne({ b: 1, live: true });
    });

    it('checks a unique index over arrays element by element, but not inside one document', async () => {
      await items.createIndex({ tags: 1 }, { unique: true });
      await items.insertOne({ tags: ['a', 'b', 'a'] });
      await expect(items.insertOne({ tags: ['c', 'b'] })).rejects.toMatchObject({ code: 11000 });
      await items.insertOne({ tags: ['c'] });
    });

    it('refuses an index over two arrays of one document', async () => {
      await items.createIndex({ a: 1, b: 1 });
      await expect(items.insertOne({ a: [1], b: [2] })).rejects.toMatchObject({ code: 171 });
      await items.insertOne({ a: [1], b: 2 });
      await items.insertOne({ a: 1, b: [2] });
    });

    it('refuses what a partial index may not say', async () => {
      const create = (partialFilterExpression: object) => items.createIndex({ a: 1 }, { partialFilterExpression });
      await expect(create({ a: { $ne: 1 } })).rejects.toMatchObject({ code: 67 });
      await expect(create({ a: { $exists: false } })).rejects.toMatchObject({ code: 67 });
      await expect(create({ a: { $regex: 'x' } })).rejects.toMatchObject({ code: 67 });
    });

    it('finds values that are longer than a key can be', async () => {
      await items.createIndex({ text: 1 });
      const long = 'x'.repeat(5000);
      await items.insertMany([
        { _id: 1, text: `${long}a` },
        { _id: 2, text: `${long}b` },
        { _id: 3, text: 'x' },
        { _id: `${long}id` },
      ]);
      expect(await items.findOne({ text: `${long}b` })).toMatchObject({ _id: 2 });
      expect(
        (
          await items
            .find({ text: { $gt: 'x' } })
            .sort({ text: -1 })
            .toArray()
        ).map((doc) => doc._id),
      ).toEqual([2, 1]);
      expect(await items.countDocuments({ text: { $lt: `${long}b` } })).toBe(2);
      expect(await items.findOne({ _id: `${long}id` })).not.toBeNull();
    });
  });

  describe('collections and databases', () => {
    it('lists, renames and drops collections', async () => {
      await items.insertOne({ a: 1 });
      const listed = await db.listCollections({ name: items.collectionName }).toArray();
      expect(listed).toMatchObject([{ name: items.collectionName, type: 'collection' }]);
      const renamed = await items.rename(`${items.collectionName}_new`);
      expect(await renamed.countDocuments()).toBe(1);
      expect(await items.countDocuments()).toBe(0);
      await expect(db.createCollection(renamed.collectionName)).rejects.toMatchObject({ code: 48 });
      await renamed.drop();
      expect(await db.listCollections({ name: renamed.collectionName }).toArray()).toEqual([]);
    });

    it('lists more collections than fit into the first batch', async () => {
      const prefix = `${items.collectionName}_many_`;
      const names = Array.from({ length: 7 }, (_, n) => `${prefix}${n}`);
      for (const name of names) await db.createCollection(name);
      const filter = { name: { $in: names } };
      const listed = await db.listCollections(filter, { nameOnly: true, batchSize: 3 }).toArray();
      expect(listed.map(({ name }) => name as string).sort()).toEqual(names);
    });

    it('forgets documents and indexes of a dropped collection', async () => {
      await items.createIndex({ a: 1 }, { unique: true });
      await items.insertMany(Array.from({ length: 1000 }, (_, a) => ({ a })));
      await items.drop();
      await items.insertOne({ a: 5 });
      await items.insertOne({ a: 5 });
      expect(await items.countDocuments()).toBe(2);
      expect(await items.indexes()).toHaveLength(1);
    });

    it('answers ping and refuses unknown commands with 59', async () => {
      expect(await db.command({ ping: 1 })).toMatchObject({ ok: 1 });
      await expect(db.command({ doSomething: 1 })).rejects.toMatchObject({ code: 59 });
    });

    it('refuses unknown options of a command instead of ignoring them', async () => {
      await expect(db.command({ find: items.collectionName, tailable_: true })).rejects.toMatchObject({ code: 40415 });
    });

    it('refuses options of a wrong type, missing ones, and unknown ones inside what it explains', async () => {
      const name = items.collectionName;
      const refused: readonly [code: number, command: Record<string, unknown>][] = [
        [14, { find: name, filter: 'x' }],
        [14, { find: name, skip: 'x' }],
        [9, { find: name, skip: 0.5 }],
        [51024, { find: name, skip: -1 }],
        [14, { find: name, singleBatch: 'x' }],
        [2, { find: name, returnKey: true }],
        [40414, { distinct: name }],
        [14, { distinct: name, key: 1 }],
        [2, { count: name, collation: { locale: 'de' } }],
        [40414, { update: name }],
        [16, { update: name, updates: [] }],
        [
          14,
          {
            update: name,
            updates: [
              { q: {}, u: { $set: { a: 1 } } },
              { q: 'x', u: { $set: { a: 1 } } },
            ],
          },
        ],
        [40415, { update: name, updates: [{ q: {}, u: {}, comment: 1 }] }],
        [40415, { explain: { find: name, nobodys: 1 } }],
        [40415, { explain: { delete: name, deletes: [{ q: {}, limit: 1, nobodys: 1 }] } }],
      ];
      await items.insertOne({ _id: 1 });
      for (const [code, command] of refused) {
        await expect(db.command(command), JSON.stringify(command)).rejects.toMatchObject({ code });
      }
      // Of a write with one such statement none is run.
      expect(await items.findOne({ _id: 1 })).toEqual({ _id: 1 });
    });

    it('refuses collections and operations that it does not have', async () => {
      await expect(items.find({ $where: 'true' } as never).toArray()).rejects.toBeInstanceOf(MongoServerError);
      await expect(items.createIndex({ a: 'text' })).rejects.toBeInstanceOf(MongoServerError);
      await expect(items.find({}, { collation: { locale: 'de' } }).toArray()).rejects.toBeInstanceOf(MongoServerError);
    });
  });

  describe('collation', () => {
    const en = (strength: number): { locale: string; strength: number } => ({ locale: 'en', strength });
    const names = ['bob', 'Bob', 'BÓB', 'anna', 'Zoe', 'bób'];

    beforeEach(async () => {
      await items.insertMany(names.map((name, _id) => ({ _id, name })));
    });

    it('finds, counts and tells apart text as its strength says, and sorts as a dictionary does', async () => {
      const found = async (strength: number): Promise<unknown[]> =>
        (await items.find({ name: 'bob' }, { collation: en(strength), sort: { _id: 1 } }).toArray()).map(
          ({ _id }) => _id,
        );
      expect(await found(1)).toEqual([0, 1, 2, 5]);
      expect(await found(2)).toEqual([0, 1]);
      expect(await found(3)).toEqual([0]);
      const sorted = await items.find({}, { collation: { locale: 'en' }, sort: { name: 1 } }).toArray();
      expect(sorted.map(({ name }) => name)).toEqual(['anna', 'bob', 'Bob', 'bób', 'BÓB', 'Zoe']);
      const simple = await items.find({}, { collation: { locale: 'simple' }, sort: { name: 1 } }).toArray();
      expect(simple.map(({ name }) => name)).toEqual(['Bob', 'BÓB', 'Zoe', 'anna', 'bob', 'bób']);
      expect(await items.countDocuments({ name: { $in: ['ANNA', 'zoe'] } }, { collation: en(2) })).toBe(2);
      expect(await items.countDocuments({ name: { $gte: 'c' } }, { collation: en(1) })).toBe(1);
      expect(await items.distinct('name', {}, { collation: en(1) })).toHaveLength(3);
      expect(await items.find({ name: /^bob$/ }, { collation: en(1) }).toArray()).toHaveLength(1);
    });

    it('decides which documents are changed and removed', async () => {
      expect(await items.updateMany({ name: 'BOB' }, { $set: { n: 1 } }, { collation: en(2) })).toMatchObject({
        matchedCount: 2,
      });
      const options = { collation: en(3), sort: { name: -1 } as const };
      expect(await items.findOneAndUpdate({ name: { $lt: 'c' } }, { $set: { last: true } }, options)).toMatchObject({
        _id: 2,
      });
      expect(await items.deleteMany({ name: { $ne: 'BOB' } }, { collation: en(1) })).toMatchObject({ deletedCount: 2 });
      await items.bulkWrite([{ deleteOne: { filter: { name: 'bOB', n: 1 }, collation: en(2) } }]);
      expect(await items.countDocuments()).toBe(3);
    });

    it('goes through the stages of a pipeline that follow it, and is refused with the others', async () => {
      const run = (...stages: object[]): Promise<object[]> => items.aggregate(stages, { collation: en(1) }).toArray();
      expect(await run({ $match: { name: 'BOB' } }, { $count: 'n' })).toEqual([{ n: 4 }]);
      expect(await run({ $unwind: '$name' }, { $match: { name: 'BOB' } }, { $sort: { name: 1, _id: 1 } })).toHaveLength(
        4,
      );
      expect(await run({ $group: { _id: '$name', n: { $sum: 1 } } }, { $sort: { n: -1 } })).toMatchObject([
        { _id: 'bob', n: 4 },
        { n: 1 },
        { n: 1 },
      ]);
      if (!foreign) {
        for (const stage of [
          { $lookup: { from: 'x', localField: 'a', foreignField: 'b', as: 'c' } },
          { $project: { same: { $eq: ['$name', 'bob'] } } },
          { $group: { _id: null, all: { $addToSet: '$name' } } },
        ]) {
          await expect(run(stage), JSON.stringify(stage)).rejects.toMatchObject({ code: 115 });
        }
        const change = items.updateOne({ name: 'bob' }, { $addToSet: { tags: 'a' } }, { collation: en(1) });
        await expect(change).rejects.toMatchObject({ code: 115 });
      }
    });

    it('makes a unique index refuse what it takes for equal', async () => {
      await items.deleteMany({ _id: { $in: [1, 2, 5] } });
      await items.createIndex({ name: 1 }, { unique: true, collation: en(2) });
      await expect(items.insertOne({ _id: 10, name: 'BOB' })).rejects.toMatchObject({ code: 11000 });
      await items.insertOne({ _id: 11, name: 'bób' });
      const [, index] = await items.indexes();
      expect(index).toMatchObject({ name: 'name_1', collation: { locale: 'en', strength: 2, caseLevel: false } });
    });

    it('is served by an index of the same one only, but conditions without text by any', async () => {
      await items.createIndex({ name: 1 }, { name: 'folded', collation: en(2) });
      await items.createIndex({ name: 1 }, { name: 'plain' });
      const planOf = async (filter: object, collation?: object): Promise<string> =>
        JSON.stringify(
          (await items.find(filter, { ...(collation && { collation }) } as never).explain())['queryPlanner'],
        );
      expect(await planOf({ name: 'BOB' }, en(2))).toContain('"indexName":"folded"');
      expect(await planOf({ name: 'BOB' })).toContain('"indexName":"plain"');
      expect(await planOf({ name: 'BOB' }, en(1))).toContain('COLLSCAN');
      await items.dropIndex('plain');
      expect(await planOf({ name: 'BOB' })).toContain('COLLSCAN');
      expect(await planOf({ name: 5 })).toContain('"indexName":"folded"');
      // A number was served by it before: text of the same shape is not.
      expect(await items.find({ name: 'Bob' }).toArray()).toHaveLength(1);
      expect(await items.find({ name: 'bob' }, { collation: en(2) }).toArray()).toHaveLength(2);
    });

    it('is refused with the code of MongoDB, or by name where only this engine has it not', async () => {
      const refused: readonly [code: number, collation: object, text: RegExp][] = [
        [40414, { strength: 1 }, /locale/],
        [40415, { locale: 'en', nobodys: 1 }, /nobodys/],
        [51024, { locale: 'en', strength: 9 }, /strength/],
        [2, { locale: 'nowhere' }, /nowhere/],
      ];
      const here: readonly [code: number, collation: object, text: RegExp][] = [
        [2, { locale: 'de' }, /"de" is not supported/],
        [2, { locale: 'en', strength: 4 }, /strength 4/],
        [2, { locale: 'en', caseLevel: true }, /caseLevel true/],
        [2, { locale: 'en', numericOrdering: true }, /numericOrdering/],
        [2, { locale: 'en', alternate: 'shifted' }, /alternate "shifted"/],
      ];
      for (const [code, collation, message] of foreign ? refused : [...refused, ...here]) {
        const find = items.find({}, { collation } as never).toArray();
        await expect(find, JSON.stringify(collation)).rejects.toMatchObject({
          code,
          message: expect.stringMatching(message) as string,
        });
      }
    });
  });

  describe('explain', () => {
    it('tells an index scan from a collection scan', async () => {
      await numbered(50);
      await items.createIndex({ parity: 1, n: 1 });
      const indexed = await items.find({ parity: 1 }).sort({ n: -1 }).explain();
      expect(JSON.stringify(indexed['queryPlanner'])).toContain('"indexName":"parity_1_n_1"');
      expect(JSON.stringify(indexed['queryPlanner'])).not.toContain('"SORT"');
      const scanned = await items.find({ other: 1 }).explain();
      expect(JSON.stringify(scanned['queryPlanner'])).toContain('COLLSCAN');
    });
  });
});
