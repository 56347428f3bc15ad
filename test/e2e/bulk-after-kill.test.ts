import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { App } from '../../src/app.js';
import type { Collection } from '../../src/features/collections/collection.js';
import { documentStore } from '../../src/features/documents/document-store.js';
import { batchStore } from '../../src/features/documents/insert-batch.js';
import { settleBatches } from '../../src/features/documents/settle-batches.js';
import { migrate } from '../../src/migrations/migrate.js';
import { buildCollection, buildProject, type TestProject } from '../helpers/build-project.js';
import { eventually } from '../helpers/eventually.js';
import { startService } from '../helpers/run-binary.js';
import { openTempDir, type TempDir } from '../helpers/temp-dir.js';
import { withApp } from '../helpers/with-app.js';

const BATCH_SIZE = 40;
const WRITERS = 8;

let dir: TempDir;
let env: Record<string, string>;
let owner: TestProject;
let items: Collection;

beforeAll(async () => {
  dir = await openTempDir();
  env = { BSVC_DATA_DIR: dir.path, BSVC_LOG_LEVEL: 'silent' };
  await withApp(env, async (app) => {
    await migrate(app.db);
    owner = await buildProject(app);
    items = await buildCollection(app, owner.project, { name: 'items' });
  });
});
afterAll(() => dir.remove());

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
      const server = await startService(['serve', '--port', '0', '--no-worker'], env);
      const writers = Array.from({ length: WRITERS }, (_, writer) =>
        insertUntilGone(server.ready.url, `${round}-${writer}`, answered),
      );
      const enough = answered.size + 10 + round * 7;
      await eventually('batches are answered', () => answered.size > enough);
      await server.stop('SIGKILL');
      await Promise.all(writers);
    }
    await withApp(env, (app) => expectWholeBatches(app, answered), 120_000);
  });
});

async function expectWholeBatches(app: App, answered: ReadonlySet<string>): Promise<void> {
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
}
