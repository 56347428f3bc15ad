import { rmSync } from 'node:fs';
import { join } from 'node:path';
import mongoose, { type Connection, type Model, Schema } from 'mongoose';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Engine, openEngine } from '../../index.js';
import { temporaryDir } from '../transports.js';

interface Author {
  name: string;
  email: string;
}

interface Book {
  title: string;
  author: mongoose.Types.ObjectId | Author;
  pages: number;
  tags: string[];
}

describe('mongoose over the wire transport', () => {
  const dataDir = temporaryDir();
  let engine: Engine;
  let connection: Connection;
  let authors: Model<Author>;
  let books: Model<Book>;

  beforeAll(async () => {
    engine = openEngine({ dataDir });
    const { uri } = await engine.listen(`unix:${join(dataDir, 'wire.sock')}`);
    connection = await mongoose.createConnection(uri, { dbName: 'library' }).asPromise();
    const author = new Schema<Author>(
      { name: { type: String, required: true }, email: { type: String, unique: true } },
      { timestamps: true },
    );
    const book = new Schema<Book>({
      title: String,
      author: { type: Schema.Types.ObjectId, ref: 'Author' },
      pages: { type: Number, index: true },
      tags: [String],
    });
    authors = connection.model('Author', author);
    books = connection.model('Book', book);
    await Promise.all([authors.init(), books.init()]);
  });

  afterAll(async () => {
    await connection.close();
    await engine.close();
    rmSync(dataDir, { recursive: true, force: true });
  });

  it('makes the indexes of its schemas and keeps unique ones', async () => {
    await authors.create({ name: 'Ann', email: 'ann@x.test' });
    await expect(authors.create({ name: 'Other', email: 'ann@x.test' })).rejects.toMatchObject({ code: 11000 });
    expect((await books.listIndexes()).map((index: { name: string }) => index.name)).toContain('pages_1');
  });

  it('finds, sorts and makes indexes by the collation of its queries and schemas', async () => {
    const schema = new Schema<{ login: string }>({ login: String });
    schema.index({ login: 1 }, { unique: true, collation: { locale: 'en', strength: 2 } });
    const logins = connection.model('Login', schema);
    await logins.init();
    await logins.create([{ login: 'Ann' }, { login: 'bob' }]);
    await expect(logins.create({ login: 'ANN' })).rejects.toMatchObject({ code: 11000 });
    const collation = { locale: 'en', strength: 2 } as const;
    expect(await logins.findOne({ login: 'BOB' }).collation(collation)).toMatchObject({ login: 'bob' });
    const sorted = await logins.find().collation(collation).sort({ login: -1 });
    expect(sorted.map(({ login }) => login)).toEqual(['bob', 'Ann']);
    expect(await logins.syncIndexes()).toEqual([]);
  });

  it('creates, reads, updates, saves and deletes documents', async () => {
    const made = await authors.create({ name: 'Bob', email: 'bob@x.test' });
    const found = await authors.findById(made._id);
    found!.name = 'Robert';
    await found!.save();
    expect(await authors.findOne({ email: 'bob@x.test' }).lean()).toMatchObject({ name: 'Robert' });
    await authors.updateOne({ _id: made._id }, { $set: { name: 'Rob' } });
    const updated = await authors.findOneAndUpdate({ _id: made._id }, { email: 'rob@x.test' }, { new: true });
    expect(updated).toMatchObject({ name: 'Rob', email: 'rob@x.test' });
    expect(await authors.exists({ email: 'rob@x.test' })).not.toBeNull();
    expect(await authors.deleteOne({ _id: made._id })).toMatchObject({ deletedCount: 1 });
    expect(await authors.countDocuments({ _id: made._id })).toBe(0);
  });

  it('populates references, pushes into arrays and walks cursors', async () => {
    const author = await authors.create({ name: 'Cleo', email: 'cleo@x.test' });
    await books.insertMany(
      Array.from({ length: 30 }, (_, n) => ({ title: `Book ${n}`, author: author._id, pages: n * 10, tags: [] })),
    );
    await books.updateMany({ pages: { $gte: 200 } }, { $push: { tags: 'long' } });
    const [longest] = await books
      .find({ tags: 'long' })
      .sort({ pages: -1 })
      .limit(1)
      .populate<{ author: Author }>('author');
    expect(longest).toMatchObject({ title: 'Book 29', author: { name: 'Cleo' } });
    let walked = 0;
    for await (const book of books.find().cursor({ batchSize: 7 })) walked += book.pages >= 0 ? 1 : 0;
    expect(walked).toBe(30);
  });

  it('aggregates with a join', async () => {
    const [result] = await books.aggregate<{ _id: string; books: number; pages: number }>([
      { $match: { tags: 'long' } },
      { $lookup: { from: 'authors', localField: 'author', foreignField: '_id', as: 'writers' } },
      { $unwind: '$writers' },
      { $group: { _id: '$writers.name', books: { $sum: 1 }, pages: { $max: '$pages' } } },
    ]);
    expect(result).toEqual({ _id: 'Cleo', books: 10, pages: 290 });
  });

  it('undoes what a transaction wrote that is aborted, and keeps what one wrote that is committed', async () => {
    for (const [name, outcome] of [
      ['Tom', 'abort'],
      ['Tess', 'commit'],
    ] as const) {
      const session = await connection.startSession();
      session.startTransaction();
      await authors.create([{ name, email: `${name}@x.test` }], { session });
      expect(await authors.findOne({ name })).toBeNull();
      expect(await authors.findOne({ name }, null, { session })).not.toBeNull();
      await (outcome === 'abort' ? session.abortTransaction() : session.commitTransaction());
      await session.endSession();
      expect(await authors.countDocuments({ name })).toBe(outcome === 'abort' ? 0 : 1);
    }
  });
});
