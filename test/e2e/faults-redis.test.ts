import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Engine, openEngine } from '../world/engine.js';
import { projectStore } from '../world/stored.js';
import { buildCollection, buildProject, type TestProject } from '../helpers/build-project.js';
import { buildWebhook } from '../helpers/build-webhook.js';
import { eventually } from '../helpers/eventually.js';
import { send, startLoad } from '../helpers/load.js';
import { hasRedis, startRedis, type RedisServer } from '../helpers/redis-server.js';
import { runOrThrow, startService, type RunningService } from '../helpers/run-binary.js';
import { openCaller, type SoakCaller } from '../helpers/soak/caller.js';
import { runDocumentClient, type DocumentBooks } from '../helpers/soak/document-clients.js';
import { openRandom } from '../helpers/random.js';
import { withApp } from '../helpers/with-app.js';
import { openTempDir, type TempDir } from '../helpers/temp-dir.js';
import { openWebhookReceiver, type WebhookReceiver } from '../helpers/webhook-receiver.js';

const LIMIT = 40;

let dir: TempDir;
let redis: RedisServer;
let engine: Engine;
let receiver: WebhookReceiver;
let machines: RunningService[];
let owner: TestProject;
let limited: TestProject;
let env: Record<string, string>;
let over: boolean;
let clients: Promise<unknown>;
let callers: SoakCaller[];
let books: DocumentBooks;

/**
 * Two machines (one of them with two processes) and a worker, as a larger installation has them: one MongoDB, one
 * Redis.
 */
beforeAll(async () => {
  if (!hasRedis) return;
  dir = await openTempDir();
  redis = await startRedis();
  engine = openEngine({ dataDir: join(dir.path, 'engine') });
  receiver = await openWebhookReceiver();
  env = {
    MONGODB_URI: `${(await engine.listen('127.0.0.1:0')).uri}/?directConnection=true`,
    BSVC_SECRET_KEY: 'the master key of tests that kill Redis',
    REDIS_URL: redis.url,
    BSVC_DATA_DIR: join(dir.path, 'data'),
    BSVC_LOG_LEVEL: 'fatal',
    BSVC_WEBHOOK_ALLOW_PRIVATE: 'true',
    BSVC_RATE_LIMIT: '1000000/15m',
    BSVC_TRUST_PROXY: '1',
  };
  const first = await startService(['serve', '--port', '0', '--no-worker', '--processes', '2'], env);
  machines = [
    first,
    ...(await Promise.all([startService(['serve', '--port', '0', '--no-worker'], env), startService(['worker'], env)])),
  ];
  await withApp(env, async (app) => {
    owner = await buildProject(app);
    limited = await buildProject(app, 'limited');
    await buildCollection(app, owner.project, { name: 'notes' });
    await buildWebhook(app, owner.project, receiver.url);
    await projectStore(app).updateOne({ _id: limited.project._id }, { $set: { limits: { requests: LIMIT } } });
  });
  over = false;
  books = { documents: [], batches: new Map(), orders: new Map() };
  const random = openRandom(1);
  callers = machines.slice(0, 2).map(({ ready }) =>
    openCaller(
      () => ready.url,
      owner,
      () => over,
    ),
  );
  clients = Promise.all(
    callers.flatMap((caller, at) =>
      ['a', 'b'].map((name) => runDocumentClient(caller, `${name}${at}`, random.fork(`${name}${at}`), books)),
    ),
  );
});
afterAll(async () => {
  if (!hasRedis) return;
  over = true;
  await clients;
  for (const machine of machines) await machine.stop('SIGKILL');
  await receiver.close();
  await engine.close();
  await redis.kill();
  await dir.remove();
});

const replies = (): number => callers.reduce((sum, { counts }) => [...counts.values()].reduce((a, b) => a + b, sum), 0);

/** Processes that serve: two of the first machine, one of the second. */
const SERVING = 3;
let addresses = 0;
/** How many of many requests from a new address pass, sent to both machines in turn. */
async function countAllowed(servers: readonly RunningService[], uses = 2 * LIMIT): Promise<number> {
  const headers = { 'x-api-key': limited.publishable, 'x-forwarded-for': `203.0.113.${++addresses}` };
  const statuses = await Promise.all(
    Array.from({ length: uses }, (_, at) =>
      send(`${servers[at % servers.length]!.ready.url}/api/data/x`, false, headers),
    ),
  );
  expect(statuses.filter((status) => status !== 404 && status !== 429)).toEqual([]);
  return statuses.filter((status) => status !== 429).length;
}

async function cacheOf({ ready }: RunningService): Promise<string> {
  const reply = await fetch(`${ready.url}/api/health`, { headers: { connection: 'close' } });
  return ((await reply.json()) as { dependencies: { cache: string } }).dependencies.cache;
}

// Needs a `redis-server` on the PATH (Debian package redis-server); skipped without one.
describe.skipIf(!hasRedis)('Redis killed and started again while two machines are at work', () => {
  it('fails no request, keeps limits, and is used again by itself', async () => {
    const servers = machines.slice(0, 2);
    await eventually('there is load', () => replies() > 30);
    expect(await countAllowed(servers)).toBe(LIMIT);

    for (let round = 0; round < 2; round++) {
      const load = startLoad(`${servers[round % 2]!.ready.url}/api/health/live`, { clients: 4 });
      await redis.kill();
      await eventually('it is missed', async () => (await cacheOf(servers[0]!)) === 'disconnected');
      const before = replies();
      await eventually('work goes on without it', () => replies() > before + 20);
      // Each process counts alone (decision 45).
      const alone = await countAllowed(servers, 2 * SERVING * LIMIT);
      expect(alone).toBeGreaterThanOrEqual(LIMIT);
      expect(alone).toBeLessThanOrEqual(SERVING * LIMIT);
      await redis.restart();
      for (const server of servers) {
        await eventually('it is used again', async () => (await cacheOf(server)) === 'connected');
      }
      load.stop();
      expect((await load.ended).failed).toEqual([]);
    }
    await eventually('they count together again, exactly', async () => (await countAllowed(servers)) === LIMIT);
    over = true;
    await clients;
    // Not one request was refused or cut, whatever happened to Redis.
    for (const caller of callers) {
      expect(caller.violations).toEqual([]);
      expect([...caller.counts.keys()].filter((label) => !/ 20[01]$/.test(label))).toEqual([]);
    }
    await eventually('the worker has told of every change', () => {
      const told = new Set(receiver.received.map(({ event }) => event.id)).size;
      return told === books.documents.reduce((sum, { acknowledged }) => sum + acknowledged.length, 0);
    });
  });

  it('makes every process refuse a revoked key, with it, without it and after it', async () => {
    const servers = machines.slice(0, 2);
    const bsvc = (...words: string[]): Promise<string> =>
      runOrThrow(words, { ...env, BSVC_PROJECT: owner.project.name });
    const revokeAndSee = async (): Promise<void> => {
      const key = await bsvc('key', 'create', '--type', 'secret', '--quiet');
      const list = (server: RunningService): Promise<number> =>
        send(`${server.ready.url}/api/data/notes?limit=1`, false, { 'x-api-key': key });
      for (const server of servers) expect(await list(server)).toBe(200);
      const keys = JSON.parse(await bsvc('key', 'list', '--json')) as { id: string; last4: string }[];
      await bsvc('key', 'revoke', keys.find(({ last4 }) => key.endsWith(last4))!.id, '--yes');
      for (const server of servers)
        await eventually('it is refused', async () =>
          (await Promise.all([1, 2, 3, 4].map(() => list(server)))).every((status) => status === 401),
        );
    };
    await revokeAndSee();
    await redis.kill();
    await revokeAndSee();
    await redis.restart();
    await revokeAndSee();
  });
});
