import { loadavg } from 'node:os';
import { join } from 'node:path';
import { Pool } from 'undici';
import { eventually } from '../helpers/eventually.js';
import { runOrThrow, startService } from '../helpers/run-binary.js';
import { openTempDir } from '../helpers/temp-dir.js';
import { openWebhookReceiver } from '../helpers/webhook-receiver.js';
import { threadMicros } from './process-cost.js';

/*
 * What a log of changes, a webhook and the console cost a read and a write: processor time of the whole server, access
 * log and limits on, in pairs with the same of a collection that has neither. What a webhook costs has its deliveries
 * in it, which the same process makes. Linux only.
 *
 *   npm run bench features                   three starts
 *   npm run bench features -- 1
 */

const STARTS = Number(process.argv[2] ?? 3);
const CONNECTIONS = 16;
const DOCUMENTS = 200;
const REQUESTS = 400;
const WARM_UPS = 8;
const ROUNDS = 12;

const COLLECTIONS = ['plain', 'logged', 'hooked'] as const;
type Collection = (typeof COLLECTIONS)[number];
const OPERATIONS = ['get', 'create', 'update'] as const;
type Operation = (typeof OPERATIONS)[number];

interface Server {
  pid: number;
  pool: Pool;
  headers: Record<string, string>;
  ids: Map<Collection, string[]>;
  stop: () => Promise<void>;
}

const median = (values: readonly number[]): number => [...values].sort((a, b) => a - b)[values.length >> 1]!;
const shares = new Map<string, number[]>();
const receiver = await openWebhookReceiver();
console.log(`load ${loadavg()[0]!.toFixed(1)}; processor time of a request, and how much more by pairs`);
for (let start = 0; start < STARTS; start++) await withServers(measureAll);
for (const [name, all] of shares)
  console.log(`${name.padEnd(30)} ${((median(all) - 1) * 100).toFixed(1).padStart(6)} %`);
await receiver.close();

/** One with the console, as it is shipped, and one without. */
async function withServers(measure: (on: Server, off: Server) => Promise<void>): Promise<void> {
  const folders = [await openTempDir(), await openTempDir()];
  const [on, off] = [await startServer(folders[0]!.path, 'on'), await startServer(folders[1]!.path, 'off')];
  await measure(on, off);
  for (const server of [on, off]) await server.stop();
  for (const folder of folders) await folder.remove();
}

async function startServer(folder: string, console: 'on' | 'off'): Promise<Server> {
  const env = {
    PATH: process.env.PATH!,
    BSVC_DATA_DIR: join(folder, 'data'),
    BSVC_PROJECT: 'bench',
    BSVC_CONSOLE: console,
    BSVC_RATE_LIMIT: '10000000/15m',
    BSVC_TRUST_PROXY: '1',
    BSVC_WEBHOOK_ALLOW_PRIVATE: 'true',
  };
  const { keys } = JSON.parse(await runOrThrow(['project', 'create', 'bench', '--json'], env)) as {
    keys: { secret: string };
  };
  await runOrThrow(['project', 'update', 'bench', '--limit', 'database=1000000000000'], env);
  for (const name of COLLECTIONS)
    await runOrThrow(['collection', 'add', name, '--field', 'title:String!', '--field', 'views:Number=0'], env);
  for (const name of ['plain', 'hooked']) await runOrThrow(['collection', 'changes', name, '--off'], env);
  await runOrThrow(['collection', 'changes', 'logged', '--on'], env);
  await runOrThrow(['webhook', 'add', '--url', receiver.url, '--events', 'hooked.*'], env);
  const service = await startService(['serve', '--port', '0'], env);
  const headers = { 'x-api-key': keys.secret, 'content-type': 'application/json' };
  const pool = new Pool(service.ready.url, { connections: CONNECTIONS });
  const server: Server = {
    pid: service.process.pid!,
    pool,
    headers,
    ids: new Map(),
    stop: async () => {
      await pool.close();
      await service.stop();
    },
  };
  for (const name of COLLECTIONS) {
    const ids: string[] = [];
    while (ids.length < DOCUMENTS) ids.push(await create(server, name));
    server.ids.set(name, ids);
  }
  return server;
}

async function measureAll(on: Server, off: Server): Promise<void> {
  for (const operation of OPERATIONS) {
    const kinds = [
      { name: 'plain', server: on, collection: 'plain' },
      { name: 'logged', server: on, collection: 'logged' },
      { name: 'hooked, with its deliveries', server: on, collection: 'hooked' },
      { name: 'without the console', server: off, collection: 'plain' },
    ] as const;
    const costs = kinds.map((): number[] => []);
    for (let round = -WARM_UPS; round < ROUNDS; round++) {
      const order = [...kinds.entries()];
      for (const [at, { server, collection }] of round % 2 === 0 ? order : order.toReversed()) {
        const micros = await burst(server, operation, collection);
        if (round >= 0) costs[at]!.push(micros);
      }
    }
    const [plain] = costs as [number[]];
    console.log(
      `${operation.padEnd(8)} ${kinds.map(({ name }, at) => `${name} ${Math.round(median(costs[at]!))} us`).join(', ')}`,
    );
    for (const [at, { name }] of kinds.entries()) {
      if (at === 0) continue;
      const key = `${operation}, ${name}`;
      const more = median(costs[at]!.map((micros, round) => micros / plain[round]!));
      shares.set(key, [...(shares.get(key) ?? []), more]);
    }
  }
}

/** Microseconds of a request, what follows from it included. */
async function burst(server: Server, operation: Operation, collection: Collection): Promise<number> {
  receiver.received.length = 0;
  const before = threadMicros(server.pid);
  let next = 0;
  const sender = async (): Promise<void> => {
    for (let at = next++; at < REQUESTS; at = next++) await send(server, operation, collection, at);
  };
  await Promise.all(Array.from({ length: CONNECTIONS }, sender));
  if (collection === 'hooked' && operation !== 'get')
    await eventually('everything is delivered', () => receiver.received.length >= REQUESTS);
  return (threadMicros(server.pid) - before) / REQUESTS;
}

async function send(server: Server, operation: Operation, collection: Collection, at: number): Promise<void> {
  if (operation === 'create') {
    await create(server, collection);
    return;
  }
  const ids = server.ids.get(collection)!;
  const path = `/api/data/${collection}/${ids[at % ids.length]!}`;
  const body = operation === 'update' ? JSON.stringify({ views: at }) : null;
  const method = operation === 'update' ? 'PATCH' : 'GET';
  const reply = await server.pool.request({ method, path, headers: server.headers, body });
  if (reply.statusCode !== 200) throw new Error(`${method} was answered ${reply.statusCode}`);
  await reply.body.dump();
}

async function create({ pool, headers }: Server, collection: Collection): Promise<string> {
  const body = JSON.stringify({ title: 'x'.repeat(230), views: 1 });
  const reply = await pool.request({ method: 'POST', path: `/api/data/${collection}`, headers, body });
  if (reply.statusCode !== 201) throw new Error(`a document was answered ${reply.statusCode}`);
  return ((await reply.body.json()) as { _id: string })._id;
}
