/**
 * Measures the embedded engine: CPU per operation, operations per second and memory, at 10,000, 200,000 and 1,000,000
 * documents of about 300 bytes, up to 200,000 through both transports, and at the end the growth of each operation's
 * cost from the smallest to the largest. `npm run bench engine [-- documents...]`; a script, not a test. It runs as
 * compiled code, because loaders for TypeScript add work to every call.
 */
import { join } from 'node:path';
import { MongoClient } from 'mongodb';
import { type DataCollection, type DataDb, type Engine, openEngine } from '../../src/engine/index.js';
import { openTempDir } from '../helpers/temp-dir.js';

// oxlint-disable-next-line typescript/no-explicit-any -- documents of any shape
type Items = DataCollection<any>;

interface Measured {
  operation: string;
  cpuMicros: number;
  perSecond: number;
}

const SIZES = process.argv.slice(2).length > 0 ? process.argv.slice(2).map(Number) : [10_000, 200_000, 1_000_000];
/** The transport's own cost does not depend on the size: larger collections are measured in the process alone. */
const LARGEST_BY_WIRE = 200_000;
/** Of what takes as long as there are documents that match, or at all. */
const EACH = ' (per document)';
const OWNERS = 500;
const GROUPS = 400;
const TOPICS = 300;
/** What an index answers costs at most so many times as much in the largest collection as in the smallest. */
const MAX_GROWTH = 1.5;

/** An author has so many documents, however many there are in all. */
const PER_AUTHOR = 200;
let authors = 1;

function documentOf(n: number): Record<string, unknown> {
  return {
    _id: n,
    author: n % authors,
    owner: n % OWNERS,
    group: n % GROUPS,
    topic: n % TOPICS,
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
  const fieldsOf = (n: number): Record<string, unknown>[] => [
    { owner: Math.abs(n) % OWNERS },
    { group: Math.abs(n * 7) % GROUPS },
    { topic: Math.abs(n * 11) % TOPICS },
  ];
  for (const fields of [2, 3]) {
    await add(`list of 20 by $or of ${fields} fields`, 1_000, (n) =>
      items
        .find({ $or: fieldsOf(n).slice(0, fields) })
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
  const counted = Math.round(Math.min(3_000, 100_000_000 / size));
  await add(`count of one field, of another${EACH}`, counted, async (n) => {
    for (const filter of fieldsOf(n).slice(0, 2)) await items.countDocuments(filter);
  });
  await add(`count by $or of both${EACH}`, counted, (n) => items.countDocuments({ $or: fieldsOf(n).slice(0, 2) }));
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
  await add(`unindexed scan${EACH}`, scans, () => items.countDocuments({ 'address.city': 'nowhere' }));
  await add(`$group over all${EACH}`, scans, () =>
    items.aggregate([{ $group: { _id: '$status', n: { $sum: 1 }, views: { $avg: '$views' } } }]).toArray(),
  );
  const total = await items.estimatedDocumentCount();
  for (const result of results.filter(({ operation }) => operation.endsWith(EACH) && !operation.startsWith('insert'))) {
    const documents = result.operation.startsWith('count') ? size * (1 / OWNERS + 1 / GROUPS) : total;
    result.cpuMicros /= documents;
    result.perSecond *= documents;
  }
  return results;
}

/** Lists between whose indexes there is a choice, of which the larger one once was taken as soon as both were large. */
async function measureChoices(items: Items): Promise<Measured[]> {
  await items.createIndex({ author: 1, views: -1 });
  await items.createIndex({ createdAt: -1 });
  const results: Measured[] = [];
  const list = async (operation: string, filterOf: (author: number) => Record<string, unknown>): Promise<void> => {
    const read = (n: number) =>
      items
        .find(filterOf(Math.abs(n) % authors))
        .sort({ createdAt: -1 })
        .limit(20)
        .toArray();
    results.push(await measure(operation, 1_000, read));
  };
  await list('list of 20 by author and status, each with an index', (author) => ({ author, status: 'live' }));
  await list('list of 20 by author, newest first, by two indexes', (author) => ({ author }));
  results.push(
    await measure('list of 20 behind 5,000, by an index', 1_000, (n) =>
      items
        .find({})
        .sort({ createdAt: -1 })
        .skip(5_000 + (Math.abs(n) % 100))
        .limit(20)
        .toArray(),
    ),
    await measure('count of what is not, by an index', 1_000, () => items.countDocuments({ status: { $ne: 'gone' } })),
  );
  return results;
}

/** Processor time of each operation by size, and by how much the largest costs more than the smallest. */
function printGrowth(title: string, runs: readonly { size: number; results: readonly Measured[] }[]): void {
  console.log(`\n${title}, us CPU\n`);
  const cells = (first: string, others: readonly string[]): string =>
    `  ${first.padEnd(60)}${others.map((text) => text.padStart(12)).join('')}`;
  console.log(cells('documents', [...runs.map(({ size }) => size.toLocaleString('en')), 'growth']));
  for (const { operation, cpuMicros: least } of runs[0]!.results) {
    const costs = runs.map(({ results }) => results.find((result) => result.operation === operation)?.cpuMicros ?? NaN);
    const growth = costs.at(-1)! / least;
    const mark = growth > MAX_GROWTH && !operation.endsWith(EACH) ? ' !' : '';
    const shown = costs.map((cost) => (cost < 10 ? cost.toFixed(2) : cost.toFixed(0)));
    console.log(cells(operation, [...shown, `${growth.toFixed(2)}${mark}`]));
  }
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
  await items.createIndex({ group: 1, createdAt: -1 });
  await items.createIndex({ topic: 1, createdAt: -1 });
  await items.createIndex({ status: 1, owner: 1, createdAt: 1 });
  await items.createIndex({ place: '2dsphere' });
}

/** Measures through the official driver, which runs in this process too: its share is in the figures. */
async function measureByWire(engine: Engine, dataDir: string, size: number): Promise<Measured[]> {
  const { uri } = await engine.listen(`unix:${join(dataDir, 'wire.sock')}`);
  const client = await MongoClient.connect(uri);
  const remote = client.db('bench').collection('items') as unknown as Items;
  const results = await measureAll(remote, size, size * 2 + 100_000, 1);
  await client.close();
  return results;
}

const inProcess: { size: number; results: Measured[] }[] = [];
const overTheWire: { size: number; results: Measured[] }[] = [];
for (const size of SIZES) {
  const { path: dataDir, remove } = await openTempDir();
  const engine = openEngine({ dataDir });
  const db: DataDb = engine.db('bench');
  const items: Items = db.collection('items');
  authors = Math.ceil(size / PER_AUTHOR);
  await createIndexes(items);
  const loaded = await load(items, size);
  const scans = size > 100_000 ? 2 : 20;
  const direct = await measureAll(items, size, size, scans);
  const results = [loaded, ...direct, ...(await measureChoices(items))];
  inProcess.push({ size, results });
  print(`${size.toLocaleString('en')} documents, in-process transport`, results);
  if (size <= LARGEST_BY_WIRE) {
    const driven = await measureByWire(engine, dataDir, size);
    overTheWire.push({ size, results: driven });
    print(`${size.toLocaleString('en')} documents, official driver over the wire transport`, driven);
  }
  const { fileBytes, documentBytes, documents } = engine.stats();
  const mega = (bytes: number): string => `${Math.round(bytes / 2 ** 20)} MB`;
  console.log(
    `\n  data ${mega(documentBytes)}, file ${mega(fileBytes)}, ${Math.round(fileBytes / documents)} bytes of it for each document, heap ${mega(process.memoryUsage().heapUsed)}, resident ${mega(process.memoryUsage.rss())}`,
  );
  await engine.close();
  await remove();
}
if (SIZES.length > 1) {
  printGrowth('in-process transport', inProcess);
  printGrowth('Official driver over the wire transport', overTheWire);
}
