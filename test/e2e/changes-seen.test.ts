import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { openEngine } from '../world/engine.js';
import { eventually } from '../helpers/eventually.js';
import { hasRedis, startRedis } from '../helpers/redis-server.js';
import { runOrThrow, startService } from '../helpers/run-binary.js';
import { openTempDir } from '../helpers/temp-dir.js';

const ADMIN_TOKEN = 'admin-token-of-the-changes';
/** What the contract promises for changes of keys, schemas, rules and origins. */
const SEEN_WITHIN_MS = 1000;

/** A service of several processes, and a way to change something in one place. */
interface Service {
  /** Addresses to ask, over new connections, so that every process answers. */
  urls: string[];
  env: Record<string, string>;
  change(change: Change): Promise<void>;
  close(): Promise<void>;
}

/** One change, as a command and as a request to the operators' API. */
interface Change {
  words: string[];
  method: string;
  path: string;
  body?: unknown;
}

/** Two processes of one `serve`; what changes is changed by a command. */
async function openProcesses(): Promise<Service> {
  const dir = await openTempDir();
  const env = { BSVC_DATA_DIR: dir.path, BSVC_LOG_LEVEL: 'error', BSVC_PROJECT: 'shop' };
  const service = await startService(['serve', '--port', '0', '--processes', '2'], env);
  return {
    urls: Array<string>(4).fill(service.ready.url),
    env,
    change: async ({ words }) => void (await runOrThrow(words, env)),
    async close() {
      await service.stop();
      await dir.remove();
    },
  };
}

/** Two machines with one database; what changes is changed by a request to the first. */
async function openMachines(withRedis: boolean): Promise<Service> {
  const dir = await openTempDir();
  const engine = openEngine({ dataDir: join(dir.path, 'store'), durability: 'relaxed' });
  const { uri } = await engine.listen('127.0.0.1:0');
  const redis = withRedis ? await startRedis() : null;
  const env = {
    MONGODB_URI: uri,
    BSVC_SECRET_KEY: 'a-master-key-for-tests-only-0123456789',
    BSVC_ADMIN_TOKEN: ADMIN_TOKEN,
    BSVC_DATA_DIR: dir.path,
    BSVC_LOG_LEVEL: 'error',
    BSVC_PROJECT: 'shop',
    ...(redis && { REDIS_URL: redis.url }),
  };
  const first = await startService(['serve', '--port', '0'], env);
  const second = await startService(['serve', '--port', '0', '--no-worker'], env);
  return {
    urls: [first.ready.url, second.ready.url],
    env,
    async change({ method, path, body }) {
      const reply = await fetch(first.ready.url + path, {
        method,
        headers: { authorization: `Bearer ${ADMIN_TOKEN}`, 'content-type': 'application/json' },
        ...(body !== undefined && { body: JSON.stringify(body) }),
      });
      if (!reply.ok) throw new Error(await reply.text());
    },
    async close() {
      await Promise.all([first.stop(), second.stop()]);
      await redis?.kill();
      await engine.close();
      await dir.remove();
    },
  };
}

const SERVICES: [string, boolean, () => Promise<Service>][] = [
  ['two processes of one serve, beside a command', true, openProcesses],
  ['two machines with one database', true, () => openMachines(false)],
  ['two machines with one database and Redis', hasRedis, () => openMachines(true)],
];

describe.each(SERVICES)('%s', (_name, possible, open) => {
  let service: Service;
  let projectId: string;
  let publishable: string;
  beforeAll(async () => {
    if (!possible) return;
    service = await open();
    const created = JSON.parse(await runOrThrow(['project', 'create', 'shop', '--json'], service.env)) as {
      project: { id: string };
      keys: { publishable: string };
    };
    projectId = created.project.id;
    publishable = created.keys.publishable;
    await runOrThrow(
      ['collection', 'add', 'notes', '--public', '--field', 'n:Number', '--field', 'userId:String'],
      service.env,
    );
  });
  afterAll(() => service?.close());

  /** The statuses that all processes answer to this request. */
  const ask = (key: string, method: string, headers: Record<string, string> = {}): Promise<number[]> =>
    Promise.all(
      service.urls.map(async (url) => {
        const reply = await fetch(`${url}/api/data/notes`, {
          method,
          headers: { 'x-api-key': key, 'content-type': 'application/json', connection: 'close', ...headers },
          ...(method === 'POST' && { body: '{"n":1}' }),
        });
        await reply.arrayBuffer();
        return reply.status;
      }),
    );
  const all = (status: number): number[] => service.urls.map(() => status);

  /** Makes sure that every process has answered by what it knew before, changes it, and waits for the news. */
  async function see(change: Change, look: () => Promise<number[]>, before: number, after: number): Promise<void> {
    expect(await look()).toEqual(all(before));
    await service.change(change);
    await eventually(
      `all answer ${after}`,
      async () => (await look()).every((status) => status === after),
      SEEN_WITHIN_MS,
    );
  }

  it.runIf(possible)('refuse a revoked key within a second', async () => {
    const { key, value } = JSON.parse(
      await runOrThrow(['key', 'create', '--type', 'secret', '--json'], service.env),
    ) as {
      key: { id: string };
      value: string;
    };
    const path = `/api/projects/${projectId}/keys/${key.id}`;
    const revoke = { words: ['key', 'revoke', key.id, '--yes'], method: 'DELETE', path };
    await see(revoke, () => ask(value, 'GET'), 200, 401);
  });

  it.runIf(possible)('check documents against a changed schema within a second', async () => {
    const secret = await runOrThrow(['key', 'create', '--type', 'secret', '--quiet'], service.env);
    const edit = {
      words: ['collection', 'edit', 'notes', '--add-field', 'title:String!'],
      method: 'PATCH',
      path: `/api/projects/${projectId}/collections/notes`,
      body: { addFields: [{ name: 'title', type: 'String', required: true }] },
    };
    await see(edit, () => ask(secret, 'POST'), 201, 400);
  });

  it.runIf(possible)('obey a changed rule within a second', async () => {
    const rls = {
      words: ['collection', 'rls', 'notes', '--mode', 'private'],
      method: 'PUT',
      path: `/api/projects/${projectId}/collections/notes/rls`,
      body: { mode: 'private' },
    };
    await see(rls, () => ask(publishable, 'GET'), 200, 401);
    const off = {
      words: ['collection', 'rls', 'notes', '--off'],
      method: 'PUT',
      path: rls.path,
      body: { enabled: false },
    };
    await see(off, () => ask(publishable, 'GET'), 401, 200);
  });

  it.runIf(possible)('refuse an origin that is no longer allowed within a second', async () => {
    const origins = {
      words: ['project', 'update', 'shop', '--allowed-domain', 'https://shop.example'],
      method: 'PATCH',
      path: `/api/projects/${projectId}`,
      body: { allowedDomains: ['https://shop.example'] },
    };
    const look = () => ask(publishable, 'GET', { origin: 'https://elsewhere.example' });
    await see(origins, look, 200, 403);
  });
});
