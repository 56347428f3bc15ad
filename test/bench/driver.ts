import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import autocannon from 'autocannon';
import { MongoClient, ObjectId, type Document } from 'mongodb';
import { findFreePort } from '../helpers/listen.js';
import { startService, type RunningService } from '../helpers/run-binary.js';
import { openTempDir } from '../helpers/temp-dir.js';
import { cpuSeconds } from './process-cost.js';

/*
 * What the service adds to the official driver's own cost of reading a document by id, in CPU time of the process. The
 * database is the embedded engine behind its wire transport, in a third process.
 *
 * npm run bench driver -- 5        seconds for each case
 */

const SECONDS = Number(process.argv[2] ?? 5);
const CONCURRENCY = 32;

if (process.argv[2] === 'driver')
  await readByDriver(process.argv[3]!, process.argv[4]!, process.argv[5]!, Number(process.argv[6]));
else await compare();

async function compare(): Promise<void> {
  const { path: folder, remove } = await openTempDir();
  const started: RunningService[] = [];
  const serve = async (env: Record<string, string>, ...words: string[]): Promise<RunningService['ready']> => {
    const service = await startService(['serve', '--port', '0', ...words], { BSVC_LOG_LEVEL: 'warn', ...env });
    started.push(service);
    return service.ready;
  };
  try {
    const address = `127.0.0.1:${await findFreePort()}`;
    const uri = `mongodb://${address}/?directConnection=true`;
    await serve({ BSVC_DATA_DIR: join(folder, 'store'), BSVC_ENGINE_LISTEN: address });
    const secrets = { BSVC_SECRET_KEY: 'only-for-this-bench-0123456789abcdef-0123456789' };
    const service = await serve({ MONGODB_URI: uri, BSVC_DATA_DIR: join(folder, 'files'), ...secrets }, '--demo');
    const headers = { 'x-api-key': service.demo!.keys.secret };
    const posts = `${service.url}/api/data/posts`;
    const { data } = (await (await fetch(posts, { headers })).json()) as { data: { items: { _id: string }[] } };
    const id = data.items[0]!._id;
    const byService = await readByService(`${posts}/${id}`, headers, service.pid);
    const stored = await findStored(uri, id);
    const byDriver = await runDriver([uri, stored, id, String(SECONDS)]);
    console.log(`by the driver alone   ${byDriver.toFixed(0)} us of CPU per read`);
    console.log(`by the service        ${byService.toFixed(0)} us of CPU per read`);
    console.log(`the service adds      ${(byService - byDriver).toFixed(0)} us`);
  } finally {
    for (const service of started.reverse()) await service.stop();
    await remove();
  }
}

async function readByService(url: string, headers: Record<string, string>, pid: number): Promise<number> {
  const shoot = (): Promise<autocannon.Result> =>
    autocannon({ url, headers, connections: CONCURRENCY, duration: SECONDS });
  await shoot();
  const before = cpuSeconds(pid);
  const result = await shoot();
  if (result.non2xx + result.errors > 0) throw new Error(`${result.non2xx + result.errors} requests failed`);
  const { user, system } = cpuSeconds(pid);
  return ((user + system - before.user - before.system) / result.requests.total) * 1e6;
}

/** Name of the stored collection that holds the document. */
async function findStored(uri: string, id: string): Promise<string> {
  const client = await MongoClient.connect(uri);
  try {
    const db = client.db('bsvc');
    for (const { name } of await db.listCollections().toArray())
      if (await db.collection(name).findOne({ _id: new ObjectId(id) })) return name;
    throw new Error(`no collection holds ${id}`);
  } finally {
    await client.close();
  }
}

async function runDriver(words: string[]): Promise<number> {
  const child = spawn(process.execPath, ['--import', 'tsx', import.meta.filename, 'driver', ...words], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const [line] = (await once(createInterface({ input: child.stdout }), 'line')) as [string];
  return Number(line);
}

/**
 * Reads one document again and again, as many at once as the service's clients do, and prints the CPU time of a read.
 */
async function readByDriver(uri: string, collection: string, id: string, seconds: number): Promise<void> {
  const client = await MongoClient.connect(uri);
  const store = client.db('bsvc').collection<Document>(collection);
  const filter = { $and: [{ _id: new ObjectId(id) }, { isDeleted: false }] };
  const run = async (): Promise<number> => {
    const end = performance.now() + seconds * 1000;
    let count = 0;
    const before = process.cpuUsage();
    await Promise.all(
      Array.from({ length: CONCURRENCY }, async () => {
        for (; performance.now() < end; count++) await store.findOne(filter);
      }),
    );
    const used = process.cpuUsage(before);
    return (used.user + used.system) / count;
  };
  await run();
  console.log(await run());
  await client.close();
}
