import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { openApp } from '../../src/app.js';
import { loadConfig } from '../../src/config.js';
import type { Collection } from '../../src/features/collections/collection.js';
import { documentStore } from '../../src/features/documents/document-store.js';
import { batchStore } from '../../src/features/documents/insert-batch.js';
import { settleBatches } from '../../src/features/documents/settle-batches.js';
import { migrate } from '../../src/migrations/migrate.js';
import { openLogger } from '../../src/platform/logger.js';
import { buildCollection, buildProject, type TestProject } from '../helpers/build-project.js';
import { openTempDir, type TempDir } from '../helpers/temp-dir.js';

const BATCH_SIZE = 40;
const WRITERS = 8;

let dir: TempDir;
let owner: TestProject;
let items: Collection;

beforeAll(async () => {
  dir = await openTempDir();
  const app = await openStore();
  await migrate(app.db);
  owner = await buildProject(app);
  items = await buildCollection(app, owner.project, { name: 'items' });
  await app.close();
});
afterAll(() => dir.remove());

function openStore(aheadMs = 0) {
  const { config } = loadConfig([{ source: 'test', values: { BSVC_DATA_DIR: dir.path, BSVC_LOG_LEVEL: 'silent' } }]);
  const log = openLogger({ level: 'silent', format: 'json' }, { write: () => true });
  return openApp(config, log, { now: () => Date.now() + aheadMs });
}

async function startServer(): Promise<{ process: ChildProcess; url: string }> {
  const server = spawn(
    process.execPath,
    [join(import.meta.dirname, '../../bin/bsvc.js'), 'serve', '--port', '0', '--no-worker', '--json'],
    {
      env: { PATH: process.env.PATH, BSVC_DATA_DIR: dir.path, BSVC_LOG_LEVEL: 'silent', BSVC_RATE_LIMIT: 'off' },
      stdio: ['ignore', 'pipe', 'inherit'],
    },
  );
  for await (const line of createInterface({ input: server.stdout })) {
    if (line.startsWith('{')) return { process: server, url: (JSON.parse(line) as { url: string }).url };
  }
  throw new Error('the server ended before it was ready');
}

/** Sends one batch after the other until the server is gone; tells which were answered. */
async function insertUntilGone(url: string, name: string, answered: Set<string>): Promise<void> {
  for (let at = 0; ; at++) {
    const batch = `${name}-${at}`;
    try {
      const reply = await fetch(`${url}/api/data/items/bulk`, {
        method: 'POST',
        headers: { 'x-api-key': owner.secret, 'content-type': 'application/json' },
        body: JSON.stringify(Array.from({ length: BATCH_SIZE }, (_, n) => ({ batch, n }))),
      });
      await reply.json();
      expect(reply.status).toBe(201);
      answered.add(batch);
    } catch (error) {
      if (error instanceof TypeError) return;
      throw error;
    }
  }
}

describe('bulk inserts while the server is killed', () => {
  it('leaves of every batch all documents or none, and all of an answered one', async () => {
    const answered = new Set<string>();
    for (let round = 0; round < 5; round++) {
      const server = await startServer();
      const writers = Array.from({ length: WRITERS }, (_, writer) =>
        insertUntilGone(server.url, `${round}-${writer}`, answered),
      );
      const enough = answered.size + 10 + round * 7;
      await expect.poll(() => answered.size, { timeout: 20_000, interval: 1 }).toBeGreaterThan(enough);
      server.process.kill('SIGKILL');
      await once(server.process, 'exit');
      await Promise.all(writers);
    }
    const app = await openStore(120_000);
    // Of forty batches under way at a kill, some had begun.
    expect(await settleBatches(app)).toBeGreaterThan(0);
    const counts = new Map<string, number>();
    for await (const { batch, isDeleted } of documentStore(app, items).find({})) {
      expect(isDeleted).toBe(false);
      counts.set(batch as string, (counts.get(batch as string) ?? 0) + 1);
    }
    expect(new Set(counts.values())).toEqual(new Set([BATCH_SIZE]));
    expect([...answered].filter((batch) => !counts.has(batch))).toEqual([]);
    expect(await batchStore(app).countDocuments({ state: { $ne: 'abandoned' } })).toBe(0);
    await app.close();
  });
});
