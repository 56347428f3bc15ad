import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { createServer, type AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import autocannon from 'autocannon';
import { MongoClient, ObjectId, type Document } from 'mongodb';

/*
 * What the service adds to the official driver's own cost of reading a document by id, in CPU time of the process. The database is the embedded engine behind
 * its wire door, in a third process.
 *
 *   npm run bench:driver -- 5        seconds for each case
 */

const SECONDS = Number(process.argv[2] ?? 5);
const CONCURRENCY = 32;
const TICKS_PER_SECOND = 100;
const BIN = join(import.meta.dirname, '../../bin/bsvc.js');

if (process.argv[2] === 'driver')
  await readByDriver(process.argv[3]!, process.argv[4]!, process.argv[5]!, Number(process.argv[6]));
else await compare();

async function compare(): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), 'bsvc-bench-'));
  const started: ChildProcess[] = [];
  const serve = async (
    env: NodeJS.ProcessEnv,
    ...words: string[]
  ): Promise<{ url: string; pid: number; demo?: Demo }> => {
    const settings = { PATH: process.env.PATH, BSVC_LOG_LEVEL: 'warn', BSVC_RATE_LIMIT: 'off', ...env };
    const child = spawn(process.execPath, [BIN, 'serve', '--port', '0', '--json', ...words], {
      env: settings,
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    started.push(child);
    const [line] = (await once(createInterface({ input: child.stdout }), 'line')) as [string];
    return { ...(JSON.parse(line) as { url: string; demo?: Demo }), pid: child.pid! };
  };
  try {
    const door = `127.0.0.1:${await findPort()}`;
    const uri = `mongodb://${door}/?directConnection=true`;
    await serve({ BSVC_DATA_DIR: join(folder, 'store'), BSVC_ENGINE_LISTEN: door });
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
    for (const child of started.reverse()) {
      child.kill('SIGTERM');
      await once(child, 'exit');
    }
    await rm(folder, { recursive: true, force: true });
  }
}

interface Demo {
  keys: { secret: string };
}

async function readByService(url: string, headers: Record<string, string>, pid: number): Promise<number> {
  const shoot = (): Promise<autocannon.Result> =>
    autocannon({ url, headers, connections: CONCURRENCY, duration: SECONDS });
  await shoot();
  const before = cpuSeconds(pid);
  const result = await shoot();
  if (result.non2xx + result.errors > 0) throw new Error(`${result.non2xx + result.errors} requests failed`);
  return ((cpuSeconds(pid) - before) / result.requests.total) * 1e6;
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

/** Reads one document again and again, as many at once as the service's clients do, and prints the CPU time of a read. */
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

async function findPort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  server.close();
  await once(server, 'close');
  return port;
}

function cpuSeconds(pid: number): number {
  const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1]!.split(' ');
  return (Number(fields[11]) + Number(fields[12])) / TICKS_PER_SECOND;
}
