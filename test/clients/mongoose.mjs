import mongoose from 'mongoose';
import { refused, same, uri, works } from './steps.mjs';

const connection = await mongoose.createConnection(uri, { dbName: 'mongoose' }).asPromise();
const collation = { locale: 'en', strength: 2 };
const authorSchema = new mongoose.Schema({ name: String, login: String }, { timestamps: true });
authorSchema.index({ login: 1 }, { unique: true, collation });
const Author = connection.model('Author', authorSchema);
const Book = connection.model(
  'Book',
  new mongoose.Schema({
    title: { type: String, index: true },
    pages: Number,
    author: { type: mongoose.Schema.Types.ObjectId, ref: 'Author' },
  }),
);

await works('connect, make indexes', () => Promise.all([Author.init(), Book.init()]));
await works('save, find, update, delete', async () => {
  const ann = await Author.create({ name: 'Ann', login: 'Ann' });
  const book = new Book({ title: 'One', pages: 10, author: ann });
  await book.save();
  book.pages = 11;
  await book.save();
  same((await Book.findOneAndUpdate({ pages: 11 }, { $inc: { pages: 1 } }, { returnDocument: 'after' })).pages, 12);
  await Book.insertMany([{ title: 'Two', pages: 3 }, { title: 'Three' }]);
  same((await Book.deleteMany({ pages: { $lt: 5 } })).deletedCount, 1);
});
await works('populate', async () => same((await Book.findOne({ title: 'One' }).populate('author')).author.name, 'Ann'));
await works('aggregate with $lookup', async () => {
  const rows = await Book.aggregate([
    { $lookup: { from: 'authors', localField: 'author', foreignField: '_id', as: 'by' } },
    { $match: { 'by.name': 'Ann' } },
    { $project: { _id: 0, title: 1 } },
  ]);
  same(rows, [{ title: 'One' }]);
});
await works('collation', async () => {
  same((await Author.findOne({ login: 'ANN' }).collation(collation)).login, 'Ann');
  same(await Author.create({ login: 'aNN' }).catch(({ code }) => code), 11000);
  same(await Author.syncIndexes(), []);
});
await works('GridFS', async () => {
  const bucket = new mongoose.mongo.GridFSBucket(connection.db);
  const stream = bucket.openUploadStream('a.txt');
  stream.end(Buffer.alloc(600_000, 'x'));
  await new Promise((resolve, reject) => stream.on('finish', resolve).on('error', reject));
  let size = 0;
  for await (const chunk of bucket.openDownloadStream(stream.id)) size += chunk.length;
  same(size, 600_000);
});
await works('transactions', () => connection.transaction((session) => Book.create([{ title: 'Four' }], { session })));
await refused('capped collections', /capped/, () =>
  connection.model('Log', new mongoose.Schema({}, { capped: 1024 })).createCollection(),
);
await connection.dropDatabase();
await connection.close();
