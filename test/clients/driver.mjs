import { MongoClient } from 'mongodb';
import { refused, same, uri, works } from './steps.mjs';

const client = await MongoClient.connect(uri);
const db = client.db('driver');
const items = db.collection('items');

await works('insert, find, update, delete', async () => {
  await items.insertMany([
    { _id: 1, name: 'Ann', tags: ['a'] },
    { _id: 2, name: 'bob', tags: [] },
  ]);
  same(await items.find({ tags: 'a' }).toArray(), [{ _id: 1, name: 'Ann', tags: ['a'] }]);
  same((await items.updateMany({}, { $set: { n: 1 } })).modifiedCount, 2);
  same((await items.deleteOne({ _id: 2 })).deletedCount, 1);
});
await works('aggregate', async () => {
  const rows = await items.aggregate([{ $unwind: '$tags' }, { $group: { _id: '$tags', n: { $sum: 1 } } }]).toArray();
  same(rows, [{ _id: 'a', n: 1 }]);
});
await works('collation of finds and indexes', async () => {
  const collation = { locale: 'en', strength: 2 };
  await items.createIndex({ name: 1 }, { unique: true, collation });
  same(await items.find({ name: 'ANN' }, { collation }).project({ _id: 1 }).toArray(), [{ _id: 1 }]);
  same(await items.insertOne({ name: 'aNN' }).catch(({ code }) => code), 11000);
});
await works('bulkWrite, cursors over several batches, distinct', async () => {
  await items.bulkWrite(Array.from({ length: 300 }, (_, n) => ({ insertOne: { document: { name: `n${n}`, n } } })));
  same((await items.find({}, { batchSize: 20 }).toArray()).length, 301);
  same((await items.distinct('tags')).length, 1);
});
await works('sessions', () => client.withSession((session) => items.findOne({}, { session })));
await works('transactions', async () => {
  const add = (run) => client.withSession((session) => session.withTransaction(() => run(session)));
  await add((session) => items.insertOne({ _id: 'kept' }, { session }));
  const failing = add(async (session) => {
    await items.deleteOne({ _id: 'kept' }, { session });
    await items.insertOne({ _id: 1 }, { session });
  });
  same(await failing.catch(({ code }) => code), 11000);
  same(await items.countDocuments({ _id: 'kept' }), 1);
});
await works('clean up', () => db.dropDatabase());
await refused('change streams', /\$changeStream is not available/, () => items.watch().next());
await refused('text search', /not supported|Unknown or unsupported index type 'text'/, () =>
  items.createIndex({ name: 'text' }),
);
await refused('collations of other languages', /"de" is not supported/, () =>
  items.find({}, { collation: { locale: 'de' } }).toArray(),
);
await client.close();
