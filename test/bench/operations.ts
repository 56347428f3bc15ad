/**
 * CPU per operation of the embedded engine as the API uses it: documents of about 450 bytes with the system fields and
 * the partial indexes that collections have, through the in-process transport. Compare runs on one machine only.
 * `npm run bench operations [-- documents...]`; a script, not a test.
 */
import { ObjectId } from 'mongodb';
import { type DataCollection, openEngine } from '../../src/engine/index.js';
import { openTempDir } from '../helpers/temp-dir.js';

// oxlint-disable-next-line typescript/no-explicit-any -- documents of any shape
type Posts = DataCollection<any>;

const SIZES = process.argv.slice(2).length > 0 ? process.argv.slice(2).map(Number) : [10_000, 200_000];
/** So many documents share a value of the filtered field. */
const GROUP = 50;
const ROUNDS = 5;
const ACTIVE = { isDeleted: false };
const NEWEST = { createdAt: -1, _id: -1 } as const;
const title = 'x'.repeat(330);

function documentOf(index: number): Record<string, unknown> {
  const moment = new Date(1_700_000_000_000 + index * 1000);
  return {
    _id: new ObjectId(),
    title,
    group: Math.floor(index / GROUP),
    views: index,
    isDeleted: false,
    deletedAt: null,
    createdAt: moment,
    updatedAt: moment,
  };
}

async function createIndexes(posts: Posts): Promise<void> {
  await posts.createIndexes([
    { name: 'active_createdAt', key: NEWEST, partialFilterExpression: ACTIVE },
    { name: 'trash_deletedAt', key: { deletedAt: 1 }, partialFilterExpression: { isDeleted: true } },
    { name: 'waiting_events', key: { 'outbox.at': 1 }, sparse: true },
    { name: 'list_group', key: { group: 1, ...NEWEST }, partialFilterExpression: ACTIVE },
    { name: 'sort_group', key: { group: 1, _id: 1 }, partialFilterExpression: ACTIVE },
  ]);
}

/** The best of several rounds: what else runs on the machine only adds. Each run does the operation `share` times. */
async function measure(
  operation: string,
  times: number,
  run: (n: number) => Promise<unknown>,
  share = 1,
): Promise<void> {
  let best = Infinity;
  for (let round = 0; round <= ROUNDS; round++) {
    const before = process.cpuUsage();
    for (let n = 0; n < times; n++) await run(round * times + n);
    const { user, system } = process.cpuUsage(before);
    // The first round is slower until the compiler has seen the code.
    if (round > 0) best = Math.min(best, (user + system) / times / share);
  }
  console.log(`  ${operation.padEnd(56)} ${best.toFixed(2).padStart(8)} us CPU`);
}

/** As many requests of one kind at once as share a commit under load. */
const TOGETHER = 32;

function measureTogether(operation: string, times: number, run: (n: number) => Promise<unknown>): Promise<void> {
  const together = (n: number): Promise<unknown> =>
    Promise.all(Array.from({ length: TOGETHER }, (_, k) => run(n * TOGETHER + k)));
  return measure(operation, times, together, TOGETHER);
}

async function measureAll(posts: Posts, ids: readonly ObjectId[], groups: number): Promise<void> {
  const idOf = (n: number): ObjectId => ids[(n * 2_654_435_761) % ids.length]!;
  const groupOf = (n: number): number => (n * 7919) % groups;
  const raw = { raw: true };
  await measure('findOne {_id}, raw', 20_000, (n) => posts.findOne({ _id: idOf(n) }, raw));
  await measure('findOne {_id}', 20_000, (n) => posts.findOne({ _id: idOf(n) }));
  await measure('findOne {$and:[{_id},{isDeleted}]}, raw', 20_000, (n) =>
    posts.findOne({ $and: [{ _id: idOf(n) }, ACTIVE] }, raw),
  );
  await measure('findOne {$and:[{_id},{isDeleted}]}', 20_000, (n) =>
    posts.findOne({ $and: [{ _id: idOf(n) }, ACTIVE] }),
  );
  const list = (n: number, options = {}): Promise<unknown> =>
    posts
      .find({ $and: [ACTIVE, { group: groupOf(n) }] }, options)
      .sort(NEWEST)
      .skip(0)
      .limit(20)
      .maxTimeMS(5000)
      .toArray();
  await measure('list 20, raw', 3_000, (n) => list(n, raw));
  await measure('list 20', 3_000, (n) => list(n));
  await measure('countDocuments of 50', 5_000, (n) =>
    posts.countDocuments({ $and: [ACTIVE, { group: groupOf(n) }] }, { maxTimeMS: 5000 }),
  );
  await measure('aggregate $match 50, $group', 1_000, (n) =>
    posts
      .aggregate(
        [
          { $match: { $and: [ACTIVE, {}] } },
          { $match: { group: groupOf(n) } },
          { $group: { _id: '$group', views: { $sum: '$views' } } },
          { $limit: 1001 },
        ],
        { maxTimeMS: 5000, allowDiskUse: false },
      )
      .toArray(),
  );
  await measure('aggregate $group over everything (per document)', 1, async () => {
    await posts
      .aggregate([
        { $match: ACTIVE },
        { $group: { _id: '$group', n: { $sum: 1 }, views: { $sum: '$views' } } },
        { $limit: 1001 },
      ])
      .toArray();
  });
  const update = (n: number): Promise<unknown> =>
    posts.findOneAndUpdate(
      { _id: idOf(n), isDeleted: false },
      { $set: { views: n, updatedAt: new Date() } },
      { returnDocument: 'after' },
    );
  await measureTogether('findOneAndUpdate {_id,isDeleted} $set, 32 at once', 100, update);
  await measureTogether('updateOne {_id,isDeleted} $inc, 32 at once', 100, (n) =>
    posts.updateOne({ _id: idOf(n), isDeleted: false }, { $inc: { views: 1 } }),
  );
  await measureTogether('insertOne, 32 at once', 100, (n) => posts.insertOne(documentOf(n)));
}

for (const size of SIZES) {
  const { path: dataDir, remove } = await openTempDir();
  const engine = openEngine({ dataDir, ignoreUndefined: true });
  const posts: Posts = engine.db('bench').collection('posts');
  await createIndexes(posts);
  const ids: ObjectId[] = [];
  for (let from = 0; from < size; from += 1000) {
    const documents = Array.from({ length: 1000 }, (_, k) => documentOf(from + k));
    for (const document of documents) ids.push(document['_id'] as ObjectId);
    await posts.insertMany(documents);
  }
  console.log(`\n${size.toLocaleString('en')} documents`);
  await measureAll(posts, ids, size / GROUP);
  await engine.close();
  await remove();
}
