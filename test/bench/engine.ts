/**
 * Measures the embedded engine: CPU per operation, operations per second and memory, at 10,000, 200,000 and 1,000,000
 * documents of about 300 bytes, through both doors. `npm run bench engine [-- documents...]`; a script, not a test. It
 * runs as compiled code, because loaders for TypeScript add work to every call.
 */
import { join } from 'node:path';
import { MongoClient } from 'mongodb';
import { type DataCollection, type DataDb, openEngine } from '../../src/engine/index.js';
import { openTempDir } from '../helpers/temp-dir.js';

// eslint-disable-next-line @typescript-eslint/no-explicit-any -- documents of any shape
type Items = DataCollection<any>;

interface Measured {
  operation: string;
  cpuMicros: number;
  perSecond: number;
}

const SIZES = process.argv.slice(2).length > 0 ? process.argv.slice(2).map(Number) : [10_000, 200_000, 1_000_000];
const OWNERS = 500;

function documentOf(n: number): Record<string, unknown> {
  return {
    _id: n,
    owner: n % OWNERS,
    createdAt: new Date(1_700_000_000_000 + n * 1000),
    status: ['live', 'draft', 'gone'][n % 3],
    title: `Title of document number ${n}`,
    body: 'Lorem ipsum dolor sit amet, consectetur adipiscing elit, sed do eiusmod tempor incididunt. ',
    views: n % 1000,
    tags: [`tag${n % 10}`, `tag${n % 7}`],
    place: [((n * 7919) % 3_600_000) / 10_000 - 180, ((n * 104_729) % 1_700_000) / 10_000 - 85],
    address: { city: `City ${n % 100}`, zip: String(10_000 + (n % 9000)) },
  };
}

async function measure(operation: string, times: number, run: (n: number) => Promise<unknown>): Promise<Measured> {
  // The first calls are slower until the compiler has seen them.
  const warmUp = times >= 3000 ? times / 3 : 1;
  for (let n = 0; n < warmUp; n++) await run(-n);
  const cpu = process.cpuUsage();
  const started = performance.now();
  for (let n = 1; n <= times; n++) await run(n);
  const elapsed = performance.now() - started;
  const { user, system } = process.cpuUsage(cpu);
  return { operation, cpuMicros: (user + system) / times, perSecond: (times / elapsed) * 1000 };
}

/** Pseudo-random but the same each time. */
function spread(n: number, size: number): number {
  return Math.abs((n * 2_654_435_761) % size);
}

async function load(items: Items, documents: number): Promise<Measured> {
  const chunk = 1000;
  const measured = await measure('insertMany of 1000', documents / chunk - 1, (n) =>
    items.insertMany(Array.from({ length: chunk }, (_, k) => documentOf(n * chunk + k))),
  );
  return {
    ...measured,
    operation: 'insert in batches (per document)',
    cpuMicros: measured.cpuMicros / chunk,
    perSecond: measured.perSecond * chunk,
  };
}

async function measureAll(items: Items, size: number, firstFree: number, scans: number): Promise<Measured[]> {
  const results: Measured[] = [];
  const add = async (operation: string, times: number, run: (n: number) => Promise<unknown>): Promise<void> => {
    results.push(await measure(operation, times, run));
  };
  await add('point read by _id', 20_000, (n) => items.findOne({ _id: spread(n, size) }));
  await add('indexed list of 20, newest first', 3_000, (n) =>
    items
      .find({ owner: n % OWNERS })
      .sort({ createdAt: -1 })
      .limit(20)
      .toArray(),
  );
  const ownersOf = (n: number): Record<string, unknown>[] => [
    { owner: Math.abs(n) % OWNERS },
    { status: 'live', owner: Math.abs(n * 7) % OWNERS },
    { status: 'draft', owner: Math.abs(n * 11) % OWNERS },
  ];
  for (const branches of [2, 3]) {
    await add(`list of 20 by $or of ${branches} branches`, 1_000, (n) =>
      items
        .find({ $or: ownersOf(n).slice(0, branches) })
        .sort({ createdAt: -1 })
        .limit(20)
        .toArray(),
    );
  }
  await add('list of 20 with the total of everything', 2_000, async () => {
    await items.find().limit(20).toArray();
    await items.countDocuments({});
  });
  await add('distinct by index, three values', 1_000, () => items.distinct('status'));
  await add('nearest 20 by $geoNear', 1_000, (n) =>
    items
      .aggregate([
        {
          $geoNear: {
            near: { type: 'Point', coordinates: [(Math.abs(n * 31) % 360) - 180, (Math.abs(n * 17) % 160) - 80] },
            distanceField: 'meters',
            query: { status: { $ne: 'gone' } },
          },
        },
        { $limit: 20 },
      ])
      .toArray(),
  );
  await add('count by index', 3_000, (n) =>
    items.countDocuments({
      owner: Math.abs(n) % OWNERS,
      createdAt: { $gte: new Date(1_700_000_000_000 + size * 990) },
    }),
  );
  await add('insert one by one', 3_000, (n) => items.insertOne(documentOf(firstFree + 5000 + n)));
  await add('insert, 100 at once from different callers (per document)', 60, (n) =>
    Promise.all(Array.from({ length: 100 }, (_, k) => items.insertOne(documentOf(firstFree + 20_000 + n * 100 + k)))),
  );
  const shared = results.at(-1)!;
  shared.cpuMicros /= 100;
  shared.perSecond *= 100;
  await add('updateOne by _id', 3_000, (n) => items.updateOne({ _id: spread(n, size) }, { $inc: { views: 1 } }));
  await add('lease: findOneAndUpdate on a queue', 3_000, (n) =>
    items.findOneAndUpdate(
      { status: 'live', owner: Math.abs(n) % OWNERS },
      { $set: { status: 'leased', worker: 'w', leasedAt: new Date() } },
      { sort: { createdAt: 1 }, returnDocument: 'after' },
    ),
  );
  await add('unindexed scan (per document)', scans, () => items.countDocuments({ 'address.city': 'nowhere' }));
  await add('$group over all (per document)', scans, () =>
    items.aggregate([{ $group: { _id: '$status', n: { $sum: 1 }, views: { $avg: '$views' } } }]).toArray(),
  );
  const total = await items.estimatedDocumentCount();
  for (const result of results.slice(-2)) {
    result.cpuMicros /= total;
    result.perSecond *= total;
  }
  return results;
}

function print(title: string, results: readonly Measured[]): void {
  console.log(`\n${title}`);
  for (const { operation, cpuMicros, perSecond } of results) {
    const micros = cpuMicros < 10 ? cpuMicros.toFixed(2) : cpuMicros.toFixed(0);
    console.log(
      `  ${operation.padEnd(60)} ${micros.padStart(8)} us CPU ${Math.round(perSecond).toLocaleString('en').padStart(12)} /s`,
    );
  }
}

async function createIndexes(items: Items): Promise<void> {
  await items.createIndex({ owner: 1, createdAt: -1 });
  await items.createIndex({ status: 1, owner: 1, createdAt: 1 });
  await items.createIndex({ place: '2dsphere' });
}

for (const size of SIZES) {
  const { path: dataDir, remove } = await openTempDir();
  const engine = openEngine({ dataDir });
  const direct: DataDb = engine.db('bench');
  const items: Items = direct.collection('items');
  await createIndexes(items);
  const loaded = await load(items, size);
  const scans = size > 100_000 ? 2 : 20;
  print(`${size.toLocaleString('en')} documents, in-process door`, [
    loaded,
    ...(await measureAll(items, size, size, scans)),
  ]);
  const { uri } = await engine.listen(`unix:${join(dataDir, 'door.sock')}`);
  const client = await MongoClient.connect(uri);
  const remote = client.db('bench').collection('items') as unknown as Items;
  // The driver runs in this process too: its share is in the figures.
  print(
    `${size.toLocaleString('en')} documents, official driver over the wire door`,
    await measureAll(remote, size, size * 2 + 100_000, 1),
  );
  const { fileBytes, documentBytes } = engine.stats();
  const mega = (bytes: number): string => `${Math.round(bytes / 2 ** 20)} MB`;
  console.log(
    `\n  data ${mega(documentBytes)}, file ${mega(fileBytes)}, heap ${mega(process.memoryUsage().heapUsed)}, resident ${mega(process.memoryUsage.rss())}`,
  );
  await client.close();
  await engine.close();
  await remove();
}
