import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { MongoClient, type Document } from 'mongodb';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { type Engine, openEngine } from '../../world/engine.js';
import { eventually } from '../../helpers/eventually.js';
import { runBinary, startService } from '../../helpers/run-binary.js';
import { openCliHome } from '../../helpers/run-cli.js';
import { openTempDir, type TempDir } from '../../helpers/temp-dir.js';
import { use } from '../../helpers/use.js';

const home = use(openCliHome());
const bsvc = home.bsvc;
const dataDir = join(home.dir, 'data');
const binaryEnv = { BSVC_DATA_DIR: dataDir, BSVC_DURABILITY: 'relaxed', BSVC_LOG_LEVEL: 'warn' };
const DOCUMENTS = 1_200;

const secret = (await bsvc(['project', 'create', 'shop', '--json'])).json<{ keys: { secret: string } }>().keys.secret;
const fields = ['title:String!&', 'at:Date', 'price:Number', 'tags:Array(String)'].flatMap((spec) => ['--field', spec]);
await bsvc(['collection', 'add', 'posts', '--project', 'shop', ...fields]);
const stdin = Array.from(
  { length: DOCUMENTS },
  (_, n) => `{"title":"t${n}","at":"2026-01-02","price":${n / 4},"tags":["a","b${n}"]}\n`,
).join('');
await bsvc(['data', 'import', 'posts', '-', '--format', 'ndjson', '--project', 'shop'], { stdin });
await bsvc(['byok', 'set', '--project', 'shop', '--mail-key-stdin', '--no-verify'], { stdin: 're_sealed_1234' });

/** Stands in for a MongoDB: an engine of its own, reached by the official driver. */
let dir: TempDir;
let engine: Engine;
let uri: string;
/** The address with a database in its path. */
const inDatabase = (name: string): string => uri.replace(/^(mongodb:[/]{2}[^/?]+)[/]?/, `$1/${name}`);
let client: MongoClient;
beforeEach(async () => {
  dir = await openTempDir();
  engine = openEngine({ dataDir: dir.path, durability: 'relaxed' });
  ({ uri } = await engine.listen('127.0.0.1:0'));
  client = await MongoClient.connect(uri);
});
afterEach(async () => {
  await client.close();
  await engine.close();
  await dir.remove();
});

interface Report {
  documents: number;
  written: number;
  removed: number;
  done: boolean;
  inUseBy: number[];
  next?: Record<string, string>;
  collections: { name: string; documents: number; indexes: number; sha256: string }[];
}

const target = () => client.db('bsvc');
const countThere = async (): Promise<number> => {
  const names = await target().listCollections({}, { nameOnly: true }).toArray();
  const counts = await Promise.all(names.map(({ name }) => target().collection(name).countDocuments({})));
  return counts.reduce((sum, count) => sum + count, 0);
};
const findPosts = async (): Promise<string> => {
  const names = (await target().listCollections({}, { nameOnly: true }).toArray()).map(({ name }) => name);
  for (const name of names) if (await target().collection<Document>(name).findOne({ title: 't7' })) return name;
  throw new Error('the posts are not there');
};
const wireEnv = () => ({
  MONGODB_URI: uri,
  BSVC_SECRET_KEY: readFileSync(join(dataDir, 'secret.key'), 'utf8').trim(),
});

describe('bsvc move-to', () => {
  it('makes a MongoDB answer as the embedded store did, encrypted secrets included', async () => {
    const get = async (url: string, path: string): Promise<unknown> =>
      (await fetch(`${url}/api${path}`, { headers: { 'x-api-key': secret } })).json();
    const paths = ['/data/posts?limit=50&sort=price', '/data/posts?title=t42', '/data/posts?count=true&tags_in=a'];
    const embedded = await startService(['serve', '--port', '0'], binaryEnv);
    const before = await Promise.all(paths.map((path) => get(embedded.ready.url, path)));
    await embedded.stop();

    const { code, stderr, json } = await bsvc(['move-to', uri, '--json']);
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    const report = json<Report>();
    expect(report).toMatchObject({ done: true, inUseBy: [], removed: 0 });
    expect(report.next).toEqual({
      MONGODB_URI: uri,
      BSVC_SECRET_KEY_FILE: join(dataDir, 'secret.key'),
    });
    const { BSVC_SECRET_KEY_FILE, MONGODB_URI } = report.next!;
    const moved = await startService(['serve', '--port', '0'], {
      BSVC_LOG_LEVEL: 'warn',
      BSVC_DATA_DIR: join(home.dir, 'other'),
      MONGODB_URI: MONGODB_URI!,
      BSVC_SECRET_KEY_FILE: BSVC_SECRET_KEY_FILE!,
    });
    expect(await Promise.all(paths.map((path) => get(moved.ready.url, path)))).toEqual(before);
    await moved.stop();
    const rotated = { ...wireEnv(), BSVC_SECRET_KEY: `newest-key-of-all-0123456789,${wireEnv().BSVC_SECRET_KEY}` };
    const reencrypted = await bsvc(['secrets', 'rotate', '--json'], { env: rotated });
    expect(reencrypted.json<{ reencrypted: number }>().reencrypted).toBeGreaterThan(1);
    const acts = (await bsvc(['audit', '--json'], { env: rotated })).json<{ action: string; outcome: string }[]>();
    expect(acts.find(({ action }) => action === 'move-to')).toMatchObject({ outcome: 'done' });
  });

  it('keeps every BSON type as it is, and every index with its options', async () => {
    const stored = await bsvc(['move-to', uri, '--json']);
    expect(stored.code).toBe(0);
    const posts = await findPosts();
    const embedded = openEngine({ dataDir, durability: 'relaxed' });
    try {
      const here = embedded.db('bsvc').collection(posts);
      const there = target().collection(posts);
      const [mine, theirs] = await Promise.all([
        here.find({}, { raw: true }).sort({ _id: 1 }).toArray(),
        there.find({}, { raw: true }).sort({ _id: 1 }).toArray(),
      ]);
      expect(theirs).toEqual(mine);
      const byName = (a: { name?: string }, b: { name?: string }) => (a.name! < b.name! ? -1 : 1);
      expect((await there.indexes()).sort(byName)).toEqual((await here.indexes()).sort(byName));
    } finally {
      await embedded.close();
    }
  });

  it('goes on after having been killed in the middle, and the half of it is not served', async () => {
    await runBinary(['move-to', uri], {
      env: binaryEnv,
      onStart: (child) =>
        void eventually('800 documents are there', async () => (await countThere()) >= 800 && child.kill('SIGKILL')),
    });
    const half = await countThere();
    expect(half).toBeGreaterThanOrEqual(800);
    const refused = await bsvc(['project', 'list'], { env: wireEnv() });
    expect({ code: refused.code, stderr: refused.stderr }).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('run "bsvc move-to" again') as string,
    });
    const second = (await bsvc(['move-to', uri, '--json'])).json<Report>();
    expect(second).toMatchObject({ done: true });
    expect(second.written).toBeLessThan(second.documents);
    expect((await bsvc(['project', 'list', '-q'], { env: wireEnv() })).code).toBe(0);
  });

  it('brings over what changed since an earlier run, values that passed from one document to another included', async () => {
    const service = await startService(['serve', '--port', '0', '--no-worker'], binaryEnv);
    const first = await bsvc(['move-to', uri, '--json']);
    expect({ code: first.code, report: first.json<Report>() }).toMatchObject({
      code: 1,
      report: { done: false, inUseBy: [service.ready.pid] },
    });
    expect(first.stderr).toContain('Stop "bsvc serve"');
    const call = async (method: string, path: string, body?: object): Promise<Response> => {
      const reply = await fetch(`${service.ready.url}/api/data/posts${path}`, {
        method,
        headers: { 'x-api-key': secret, 'content-type': 'application/json' },
        body: JSON.stringify(body),
      });
      if (!reply.ok) throw new Error(await reply.text());
      return reply;
    };
    const idOf = async (title: string): Promise<string> => {
      const page = (await (await call('GET', `?title=${title}`)).json()) as { data: { items: { _id: string }[] } };
      return page.data.items[0]!._id;
    };
    const [a, b] = [await idOf('t1'), await idOf('t2')];
    await call('PUT', `/${a}`, { title: 'between' });
    await call('PUT', `/${b}`, { title: 't1' });
    await call('PUT', `/${a}`, { title: 't2' });
    await service.stop();
    const second = (await bsvc(['move-to', uri, '--json'])).json<Report>();
    expect(second).toMatchObject({ done: true });
    expect(second.written).toBeLessThan(50);
    const posts = target().collection(await findPosts());
    expect((await posts.findOne({ title: 't2' }))?._id.toHexString()).toBe(a);
  });

  it('only looks at a finished move: the same is fine, a changed document is told and nothing is written over', async () => {
    await bsvc(['move-to', uri]);
    const again = await bsvc(['move-to', uri, '--json']);
    expect({ code: again.code, report: again.json() }).toMatchObject({ code: 0, report: { done: true, written: 0 } });
    const posts = target().collection(await findPosts());
    const { _id } = (await posts.findOneAndUpdate({ title: 't7' }, { $set: { price: -1 } }))!;
    const refused = await bsvc(['move-to', uri]);
    expect(refused.code).toBe(1);
    expect(refused.stderr).toContain(_id.toHexString());
    expect(await posts.findOne({ _id })).toMatchObject({ price: -1 });
  });

  it('notices a document, or an index, that is not as it was copied', async () => {
    await runBinary(['move-to', uri], {
      env: binaryEnv,
      onStart: (child) =>
        void eventually('800 documents are there', async () => (await countThere()) >= 800 && child.kill('SIGKILL')),
    });
    const posts = target().collection(await findPosts());
    await posts.updateOne({ title: 't7' }, { $set: { price: -1 } });
    await posts.insertOne({ title: 'foreign' });
    await posts.createIndex({ foreign: 1 });
    const repaired = (await bsvc(['move-to', uri, '--json'])).json<Report>();
    expect(repaired).toMatchObject({ done: true, removed: 1 });
    expect(await posts.findOne({ title: 't7' })).toMatchObject({ price: 1.75 });
    expect(await posts.indexExists('foreign_1')).toBe(false);
  });

  it('is not done when somebody writes there meanwhile: what differs is told, and the database is not worked on', async () => {
    let writing = true;
    let made = 0;
    const saboteur = (async () => {
      const name = await eventually('the posts are there', () => findPosts().catch(() => null));
      while (writing)
        await target()
          .collection<Document>(name)
          .insertOne({ title: `foreign ${++made}` })
          .catch(() => null);
    })();
    const disturbed = await bsvc(['move-to', uri, '--json']);
    writing = false;
    await saboteur;
    expect({ code: disturbed.code, stdout: disturbed.stdout }).toEqual({ code: 1, stdout: '' });
    expect(JSON.parse(disturbed.stderr.trim().split('\n')[1]!)).toMatchObject({
      code: 'MOVE_DIFFERS',
      message: expect.stringMatching(/of the collection .* differs\..*nobody else writes/) as string,
    });
    expect((await bsvc(['project', 'list'], { env: wireEnv() })).stderr).toContain('run "bsvc move-to" again');
    const repaired = (await bsvc(['move-to', uri, '--json'])).json<Report>();
    expect(repaired.done).toBe(true);
    expect(repaired.removed).toBeGreaterThan(0);
    expect(
      await target()
        .collection(await findPosts())
        .findOne({ title: /^foreign/ }),
    ).toBeNull();
  });

  it('refuses a database that holds something else', async () => {
    await target().collection('theirs').insertOne({ a: 1 });
    const { code, stderr } = await bsvc(['move-to', uri]);
    expect({ code, stderr }).toEqual({
      code: 1,
      stderr: expect.stringContaining('Name another one in the path') as string,
    });
    expect(await countThere()).toBe(1);
    const elsewhere = (await bsvc(['move-to', inDatabase('second'), '--json'])).json<Report>();
    expect(elsewhere.next).toMatchObject({ MONGODB_URI: inDatabase('second') });
    const env = { ...wireEnv(), MONGODB_URI: inDatabase('second') };
    expect((await bsvc(['project', 'list', '-q'], { env })).stdout).toBe(
      (await bsvc(['project', 'list', '-q'])).stdout,
    );
  });

  it('refuses a store without projects, which is hardly the one that was meant', async () => {
    const empty = openCliHome();
    const refused = await empty.bsvc(['move-to', uri]);
    expect(refused.code).toBe(1);
    expect(refused.stderr).toContain('The embedded store has no projects: nothing to move. Check BSVC_DATA_DIR');
    expect(await target().collections()).toEqual([]);
    empty.remove();
  });

  it('makes the database that the path of the address names', async () => {
    const { database } = (await bsvc(['move-to', inDatabase('shop'), '--dry-run', '--json'])).json<{
      database: string;
    }>();
    expect(database).toBe('shop');
  });

  it('only counts with --dry-run', async () => {
    const { code, json } = await bsvc(['move-to', uri, '--dry-run', '--json']);
    expect(code).toBe(0);
    expect(json<Report>().documents).toBeGreaterThan(DOCUMENTS);
    expect(await countThere()).toBe(0);
    expect((await bsvc(['move-to', uri, '--dry-run'])).stdout).toContain('Nothing was changed');
  });

  it('takes an address with a password from the environment or standard input only', async () => {
    const encrypted = uri.replace('//', '//ada:hush@');
    const refused = await bsvc(['move-to', encrypted]);
    expect({ code: refused.code, stderr: refused.stderr }).toEqual({
      code: 2,
      stderr: expect.stringContaining('--uri-env') as string,
    });
    expect(refused.stderr).not.toContain('hush');
    expect((await bsvc(['move-to'])).code).toBe(2);
    expect((await bsvc(['move-to', 'localhost'])).code).toBe(2);
    expect((await bsvc(['move-to', '--uri-env', 'THERE', '--dry-run'], { env: { THERE: uri } })).code).toBe(0);
    expect((await bsvc(['move-to', '--uri-stdin', '--dry-run'], { stdin: uri })).code).toBe(0);
    expect((await bsvc(['audit', '--json'])).stdout).not.toContain('hush');
  });

  it('is exit 3 when the MongoDB cannot be reached, and refuses a store that is a MongoDB', async () => {
    expect(await bsvc(['move-to', 'mongodb://127.0.0.1:1/?serverSelectionTimeoutMS=100'])).toMatchObject({
      code: 3,
      stderr: 'bsvc: MongoDB cannot be reached: check the address given and that the server is running.\n',
    });
    await bsvc(['project', 'create', 'there'], { env: { ...wireEnv(), MONGODB_URI: inDatabase('other') } });
    const moved = await bsvc(['move-to', uri], { env: { ...wireEnv(), MONGODB_URI: inDatabase('other') } });
    expect({ code: moved.code, stderr: moved.stderr }).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('MongoDB already') as string,
    });
  });
});
