import { join } from 'node:path';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { MIGRATIONS } from '../world/app.js';
import { openEngine } from '../world/engine.js';
import type { Store } from '../world/stored.js';
import { runBinary, startService } from '../helpers/run-binary.js';
import { openCliHome } from '../helpers/run-cli.js';
import { openTempDir } from '../helpers/temp-dir.js';
import { withApp } from '../helpers/with-app.js';
import { use } from '../helpers/use.js';

const home = use(openCliHome());
const env = { BSVC_DATA_DIR: join(home.dir, 'data'), BSVC_DURABILITY: 'relaxed' };
interface Applied {
  _id: string;
  appliedAt: Date;
}

const migrations = <T>(work: (store: Store<Applied>) => Promise<T>): Promise<T> =>
  withApp(env, (app) => work(app.db.collection<Applied>('migrations')));

interface Report {
  checks: { name: string; ok: boolean; detail: string }[];
}

await home.bsvc(['project', 'create', 'shop']);
await home.bsvc([
  'collection',
  'add',
  'posts',
  '--project',
  'shop',
  '--field',
  't:String',
  '--rls',
  'private',
  '--index',
  't',
]);

describe('a store that a newer version has changed', () => {
  const newer = { _id: '999-of-the-future', appliedAt: new Date() };
  beforeAll(() => migrations((store) => store.insertOne(newer)));
  afterAll(() => migrations((store) => store.deleteOne({ _id: newer._id })));

  it.each([['project list'], ['project create other'], ['backup'], ['migrate'], ['serve --port 0'], ['worker']])(
    'is refused by %s, which says what to do and changes nothing',
    async (words) => {
      const { code, stderr } = await home.bsvc(words.split(' '), { stop: AbortSignal.timeout(90_000) });
      expect({ code, stderr }).toEqual({ code: 1, stderr: expect.stringContaining('999-of-the-future') as string });
      expect(stderr).toMatch(/start that version, or a later one/);
    },
  );

  it('is told by doctor', async () => {
    const { code, json } = await home.bsvc(['doctor', '--json']);
    expect(code).toBe(1);
    expect(json<Report>().checks.find(({ name }) => name === 'migrations')).toMatchObject({ ok: false });
  });
});

describe('a store that waits for a migration', () => {
  const { id } = MIGRATIONS.at(-1)!;
  beforeEach(() => migrations((store) => store.deleteOne({ _id: id })));

  it('lacks nothing that the migration makes, says doctor, and has it afterwards', async () => {
    await withApp(env, ({ db }) => db.collection('jobs').dropIndex('due'));
    const { code, json } = await home.bsvc(['doctor', '--json']);
    const { checks } = json<Report>();
    expect(code).toBe(0);
    expect(checks.filter(({ name }) => name === 'migrations' || name === 'indexes')).toMatchObject([
      { ok: true, detail: '1 will run at the next start' },
      { ok: true, detail: 'not checked until the pending migrations have run' },
    ]);
    expect((await home.bsvc(['migrate', '--json'])).json()).toEqual({ applied: [id], pending: [] });
    const indexes = await withApp(env, ({ db }) => db.collection('jobs').indexes());
    expect(indexes.map(({ name }) => name)).toContain('due');
    expect((await home.bsvc(['doctor'])).code).toBe(0);
  });

  it('is not changed beside another process, which may be of the version before', async () => {
    await withApp(env, async () => {
      const ways = [['project', 'list'], ['migrate'], ['serve', '--port', '0'], ['worker']];
      for (const { code, stderr } of await Promise.all(ways.map((words) => runBinary(words, { env })))) {
        expect([code, stderr]).toEqual([3, expect.stringMatching(new RegExp(`end (\\d+, )*${process.pid}`))]);
      }
    });
    const services = [['serve', '--no-worker', '--port', '0'], ['worker']];
    // At once: who comes first runs it, and the other finds it done.
    const started = await Promise.all(services.map((words) => startService(words, env)));
    for (const each of started) expect(await each.stop()).toBe(0);
    expect(await migrations((store) => store.countDocuments({ _id: id }))).toBe(1);
  });
});

describe('a database that somebody has only looked at', () => {
  it('takes a moved store; one with a project in it does not', async () => {
    const dir = await openTempDir();
    const engine = openEngine({ dataDir: dir.path, durability: 'relaxed' });
    try {
      const { uri } = await engine.listen('127.0.0.1:0');
      const there = { env: { MONGODB_URI: uri, BSVC_SECRET_KEY: 'k'.repeat(16) + 'another-key-of-some-length' } };
      expect((await home.bsvc(['project', 'list'], there)).stdout).toMatch(/No projects/);
      await home.bsvc(['doctor'], there);
      await home.bsvc(['apply', '--schema'], there);
      const moved = await home.bsvc(['move-to', uri, '--json']);
      expect([moved.code, moved.stderr]).toEqual([0, '']);
      expect(moved.json()).toMatchObject({ done: true });
      const usedUri = uri.replace(/^(mongodb:[/]{2}[^/?]+)[/]?/, '$1/used');
      const used = { env: { ...there.env, MONGODB_URI: usedUri } };
      await home.bsvc(['project', 'create', 'own'], used);
      const refused = await home.bsvc(['move-to', usedUri, '--json']);
      expect([refused.code, refused.stderr]).toEqual([1, expect.stringContaining('TARGET_NOT_EMPTY') as string]);
    } finally {
      await engine.close();
      await dir.remove();
    }
  });
});
