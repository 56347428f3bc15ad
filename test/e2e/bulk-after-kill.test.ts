import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { migrate } from '../world/app.js';
import type { Collection } from '../world/collections.js';
import { documentStore } from '../world/stored.js';
import { buildCollection, buildProject, type TestProject } from '../helpers/build-project.js';
import { eventually } from '../helpers/eventually.js';
import { findFreePort } from '../helpers/listen.js';
import { startService, type RunningService } from '../helpers/run-binary.js';
import { openTempDir, type TempDir } from '../helpers/temp-dir.js';
import { withApp } from '../helpers/with-app.js';

const BATCH_SIZE = 40;
const WRITERS = 4;
const ROUNDS = 3;

let dir: TempDir;
let store: Record<string, string>;
let owner: TestProject;
let items: Collection;

beforeEach(async () => {
  dir = await openTempDir();
  store = { BSVC_DATA_DIR: dir.path, BSVC_LOG_LEVEL: 'silent', BSVC_SECRET_KEY: '0123456789abcdef0123456789abcdef' };
  await withApp(store, async (app) => {
    await migrate(app.db);
    owner = await buildProject(app);
    const fields = [
      { name: 'batch', type: 'String' as const },
      { name: 'code', type: 'String' as const, unique: true },
      { name: 'at', type: 'Number' as const },
    ];
    items = await buildCollection(app, owner.project, { name: 'items', fields, indexes: ['batch', 'at'] });
  });
});
afterEach(() => dir.remove());

type Reply = { status: number; data: Record<string, unknown> };

/** Null when the server was killed under it. */
async function call(url: string, method: string, path: string, body?: object): Promise<Reply | null> {
  try {
    const reply = await fetch(`${url}/api/data/items${path}`, {
      method,
      headers: { 'x-api-key': owner.secret, 'content-type': 'application/json' },
      ...(body && { body: JSON.stringify(body) }),
    });
    return { status: reply.status, data: ((await reply.json()) as { data: Reply['data'] }).data };
  } catch (error) {
    if (error instanceof TypeError) return null;
    throw error;
  }
}

/** Sends one batch after the other until the server is gone; tells which were answered. */
async function insertUntilGone(url: string, name: string, sent: Set<string>, answered: Set<string>): Promise<void> {
  for (let at = 0; ; at++) {
    const batch = `${name}-${at}`;
    sent.add(batch);
    // In the order of `at` the documents of a batch lie far apart.
    const body = Array.from({ length: BATCH_SIZE }, (_, n) => ({
      batch,
      code: `${batch}-${n}`,
      at: (n * 7919) % 1000,
    }));
    const reply = await call(url, 'POST', '/bulk', body);
    if (!reply) return;
    expect(reply.status).toBe(201);
    answered.add(batch);
  }
}

/**
 * How many documents of each batch one read shows, by way of reading. A walk goes by creation, as new documents come
 * before its beginning.
 */
const READS: Record<string, (url: string, batch: string) => Promise<number[] | null>> = {
  async list(url, batch) {
    const reply = await call(url, 'GET', `?batch=${batch}&limit=100`);
    return reply && [(reply.data.items as unknown[]).length, reply.data.total as number];
  },
  async count(url) {
    const reply = await call(url, 'GET', '?count=true&at_gte=0');
    return reply && [reply.data.count as number];
  },
  async aggregate(url) {
    const pipeline = [{ $match: { at: { $gte: 0 } } }, { $group: { _id: '$batch', n: { $sum: 1 } } }];
    const reply = await call(url, 'POST', '/aggregate', { pipeline });
    return reply && (reply.data as unknown as { n: number }[]).map(({ n }) => n);
  },
  async walk(url) {
    const counts = new Map<string, number>();
    for (let cursor: string | null = 'start'; cursor !== null;) {
      const reply = await call(url, 'GET', `?limit=90&cursor=${encodeURIComponent(cursor)}`);
      if (!reply) return null;
      for (const { batch } of reply.data.items as { batch: string }[]) counts.set(batch, (counts.get(batch) ?? 0) + 1);
      cursor = reply.data.nextCursor as string | null;
    }
    return [...counts.values()];
  },
};

/** Reads in one way until the server is gone; what it saw of batches in parts. */
async function readUntilGone(url: string, way: string, sent: ReadonlySet<string>, seen: string[]): Promise<void> {
  for (;;) {
    const latest = [...sent].at(-1)!;
    const counts = await READS[way]!(url, latest);
    if (!counts) return;
    for (const count of counts) if (count % BATCH_SIZE !== 0) seen.push(`${way} ${latest}: ${count}`);
  }
}

/** The database in a process of its own behind its wire transport, as a MongoDB is one. */
async function startDatabase(): Promise<{ database: RunningService; env: Record<string, string> }> {
  const port = await findFreePort();
  const env = { ...store, BSVC_ENGINE_LISTEN: `127.0.0.1:${port}` };
  const database = await startService(['serve', '--port', '0', '--no-worker'], env);
  return { database, env: { ...store, MONGODB_URI: `mongodb://127.0.0.1:${port}/?directConnection=true` } };
}

describe('bulk inserts while servers are killed', { timeout: 240_000 }, () => {
  it.each(['embedded', 'MongoDB'])(
    'are seen as a whole or not at all by every reader at every moment: %s',
    async (kind) => {
      const { database, env } = kind === 'MongoDB' ? await startDatabase() : { database: null, env: store };
      const [sent, answered, seen] = [new Set<string>(), new Set<string>(), [] as string[]];
      for (let round = 0; round < ROUNDS; round++) {
        const server = await startService(['serve', '--port', '0', '--no-worker'], env);
        const { url } = server.ready;
        // Before anything else: what the kill has left.
        const left = await READS.aggregate!(url, '');
        for (const count of left!) if (count !== BATCH_SIZE) seen.push(`after kill ${round}: ${count}`);
        const clients = [
          ...Array.from({ length: WRITERS }, (_, n) => insertUntilGone(url, `${round}-${n}`, sent, answered)),
          ...Object.keys(READS).map((way) => readUntilGone(url, way, sent, seen)),
        ];
        const enough = answered.size + 10 + round * 7;
        await eventually('batches are answered', () => answered.size > enough, 60_000);
        await server.stop('SIGKILL');
        await Promise.all(clients);
      }
      await database?.stop();
      expect(seen).toEqual([]);
      await withApp(store, async (app) => {
        const counts = new Map<string, number>();
        for await (const { batch, isDeleted } of documentStore(app, items).find({})) {
          expect(isDeleted).toBe(false);
          counts.set(batch as string, (counts.get(batch as string) ?? 0) + 1);
        }
        expect(new Set(counts.values())).toEqual(new Set([BATCH_SIZE]));
        expect([...answered].filter((batch) => !counts.has(batch))).toEqual([]);
      });
    },
  );
});
