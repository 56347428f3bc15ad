import { spawnSync } from 'node:child_process';
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  statSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { gunzipSync, gzipSync } from 'node:zlib';
import { BSONRegExp, Decimal128, Double, Int32, Long, MongoClient, type Db, type Document } from 'mongodb';
import { describe, expect, it } from 'vitest';
import { openEngine } from '../../world/engine.js';
import { eventually } from '../../helpers/eventually.js';
import { runBinary, startService } from '../../helpers/run-binary.js';
import { OWNER } from '../../../src/platform/processes/work-folder.js';
import { openCliHome } from '../../helpers/run-cli.js';
import { use } from '../../helpers/use.js';

const home = use(openCliHome());
const other = use(openCliHome());
const path = (name: string): string => join(home.dir, name);

await home.bsvc(['project', 'create', 'shop']);
const secret = (await home.bsvc(['key', 'create', '--project', 'shop', '--type', 'secret', '-q'])).stdout.trim();
await home.bsvc(['collection', 'add', 'posts', '--project', 'shop', '--field', 'title:String!&', '--field', 'at:Date']);
const stdin = Array.from({ length: 1200 }, (_, n) => `{"title":"t${n}","at":"2026-01-02"}\n`).join('');
await home.bsvc(['data', 'import', 'posts', '-', '--format', 'ndjson', '--project', 'shop'], { stdin });
const upload = join(home.dir, 'data', 'files', 'p1', 'photo');
mkdirSync(dirname(upload), { recursive: true });
writeFileSync(upload, Buffer.alloc(100_000, 7));

const exportOf = async (from: typeof home): Promise<string> =>
  (await from.bsvc(['data', 'export', 'posts', '--project', 'shop'])).stdout;

describe('bsvc backup and restore', () => {
  it('carries documents, indexes, keys, files and the master key to another store', async () => {
    const made = await home.bsvc(['backup', '--out', 'one.backup', '--json']);
    expect(made.json()).toMatchObject({ file: 'one.backup', bytes: statSync(path('one.backup')).size, files: 1 });
    expect(statSync(path('one.backup')).mode & 0o777).toBe(0o600);
    const restored = await other.bsvc(['restore', path('one.backup'), '--json']);
    expect({ code: restored.code, report: restored.json() }).toMatchObject({ code: 0, report: { files: 1 } });
    expect(await exportOf(other)).toBe(await exportOf(home));
    expect(readFileSync(join(other.dir, 'data', 'files', 'p1', 'photo'))).toEqual(Buffer.alloc(100_000, 7));
    expect(readFileSync(join(other.dir, 'data', 'secret.key'))).toEqual(
      readFileSync(join(home.dir, 'data', 'secret.key')),
    );
    const acts = (await other.bsvc(['audit', '--json'])).json<object[]>();
    expect(acts[0]).toMatchObject({ action: 'restore', outcome: 'done' });
    const doctor = (await other.bsvc(['doctor', '--json'])).json();
    expect(doctor).toMatchObject({ ok: true });
    const duplicate = await other.bsvc(['data', 'import', 'posts', '-', '--format', 'ndjson', '--project', 'shop'], {
      stdin: '{"title":"t1"}\n',
    });
    expect(duplicate.code).toBe(1);
  });

  it('removes what a killed backup has left, and nothing else', async () => {
    const child = spawnSync(process.execPath, ['-e', '']);
    const owner = `${OWNER.split('-')[0]}-${child.pid}-7`;
    const left = ['left.backup', 'bsvc-2026-11-22T030000.backup'].map((name) => path(`${name}.${owner}.part`));
    const kept = path(`other.${owner}.part`);
    for (const file of [...left, kept]) writeFileSync(file, 'part');
    const folder = mkdtempSync(join(tmpdir(), `bsvc-work-${owner}-`));
    expect((await home.bsvc(['backup', '--out', 'left.backup'])).code).toBe(0);
    expect([...left, folder].filter(existsSync)).toEqual([]);
    expect(existsSync(kept)).toBe(true);
  });

  it('refuses to replace a store with projects in it unless that is confirmed', async () => {
    await other.bsvc(['project', 'create', 'later']);
    expect((await other.bsvc(['restore', path('one.backup')])).code).toBe(2);
    expect((await other.bsvc(['project', 'show', 'later'])).code).toBe(0);
    expect((await other.bsvc(['restore', path('one.backup'), '--yes'])).code).toBe(0);
    expect((await other.bsvc(['project', 'show', 'later'])).code).toBe(1);
    expect(await exportOf(other)).toBe(await exportOf(home));
  });

  it('refuses a file that is cut short, changed, or something else, and changes nothing', async () => {
    const whole = readFileSync(path('one.backup'));
    writeFileSync(path('short.backup'), whole);
    truncateSync(path('short.backup'), whole.length - 100);
    const text = gunzipSync(whole).toString('utf8');
    writeFileSync(path('changed.backup'), gzipSync(text.replace('"projects"', '"projectz"')));
    const lines = text.trimEnd().split('\n');
    writeFileSync(path('endless.backup'), gzipSync(`${lines.slice(0, -1).join('\n')}\n`));
    writeFileSync(path('other.backup'), gzipSync('{"a":1}\n'));
    writeFileSync(path('plain.backup'), 'hello');
    const before = await exportOf(other);
    for (const name of ['short', 'changed', 'endless', 'other', 'plain']) {
      const outcome = await other.bsvc(['restore', path(`${name}.backup`), '--yes', '--json']);
      expect({ name, code: outcome.code, stderr: outcome.stderr.split('\n')[0] }).toEqual({
        name,
        code: 1,
        stderr: expect.stringContaining('cannot be restored') as string,
      });
    }
    expect((await other.bsvc(['restore', path('absent.backup'), '--yes'])).code).toBe(1);
    const folder = await other.bsvc(['restore', home.dir, '--yes']);
    expect(folder.stderr).toContain(`bsvc backup --list --to ${home.dir}`);
    expect(await exportOf(other)).toBe(before);
  });

  it('cannot be led outside the directory of files', async () => {
    const lines = gunzipSync(readFileSync(path('one.backup'))).toString('utf8');
    const { createHash } = await import('node:crypto');
    const body = lines
      .trimEnd()
      .split('\n')
      .slice(0, -1)
      .map((line) => `${line.replace('"p1/photo"', '"../../escaped"')}\n`)
      .join('');
    const end = { end: { documents: 0, files: 1, sha256: createHash('sha256').update(body).digest('hex') } };
    writeFileSync(path('evil.backup'), gzipSync(`${body}${JSON.stringify(end)}\n`));
    const third = openCliHome();
    expect((await third.bsvc(['restore', path('evil.backup')])).code).toBe(1);
    expect(readdirSync(third.dir)).toEqual(['data']);
    third.remove();
  });

  it('tells that the master key is missing when the backup was encrypted with one of its own', async () => {
    const encrypted = openCliHome();
    const env = { BSVC_SECRET_KEY: 'a-long-master-key-of-its-own-0123456789' };
    await encrypted.bsvc(['project', 'create', 'x'], { env });
    await encrypted.bsvc(['backup', '--out', 'encrypted.backup'], { env });
    const third = openCliHome();
    const file = join(encrypted.dir, 'encrypted.backup');
    expect((await third.bsvc(['restore', file])).stderr).toContain('BSVC_SECRET_KEY');
    const wrong = { BSVC_SECRET_KEY: 'quite-another-master-key-9876543210' };
    expect(await third.bsvc(['restore', file], { env: wrong })).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('Not one of the backup’s encrypted secrets can be opened') as string,
    });
    expect((await third.bsvc(['project', 'list', '-q'], { env })).stdout).toBe('');
    expect((await third.bsvc(['restore', file], { env })).code).toBe(0);
    encrypted.remove();
    third.remove();
  });

  it('makes no store for a file that is not there', async () => {
    const third = openCliHome();
    expect(await third.bsvc(['restore', 'absent.backup'])).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('There is no file') as string,
    });
    expect(readdirSync(third.dir)).toEqual([]);
    third.remove();
  });

  it('only checks the file with --verify', async () => {
    const third = openCliHome();
    expect((await third.bsvc(['restore', path('one.backup'), '--verify', '--json'])).json()).toMatchObject({
      intact: true,
    });
    expect((await third.bsvc(['project', 'list', '-q'])).stdout).toBe('');
    third.remove();
  });
});

describe('a backup of a MongoDB', () => {
  it('holds every value in its BSON type, for another MongoDB and for the embedded engine', async () => {
    const secrets = { BSVC_SECRET_KEY: 'a-master-key-for-tests-only-0123456789' };
    const [from, to] = [openCliHome(), openCliHome()];
    const engines = [from, to].map(({ dir }) => openEngine({ dataDir: join(dir, 'wire'), durability: 'relaxed' }));
    const [source, target] = await Promise.all(
      engines.map(async (engine) => MongoClient.connect((await engine.listen('127.0.0.1:0')).uri)),
    );
    const uriOf = ({ options }: MongoClient): string => `mongodb://${options.hosts[0]!.toString()}`;
    await from.bsvc(['project', 'create', 'shop'], { env: { ...secrets, MONGODB_URI: uriOf(source!) } });
    const values = [new Double(1), new Long(5), new Int32(7), Decimal128.fromString('1.50'), new BSONRegExp('a', 'i')];
    const written = values.map((value, n) => ({ n, value, list: [value, { value }] }));
    await source!.db('bsvc').collection<Document>('extras').insertMany(written);

    const file = join(from.dir, 'wire.backup');
    const backup = await from.bsvc(['backup', '--out', file], { env: { ...secrets, MONGODB_URI: uriOf(source!) } });
    expect(backup).toMatchObject({ code: 0, stderr: '' });
    expect(await to.bsvc(['restore', file], { env: { ...secrets, MONGODB_URI: uriOf(target!) } })).toMatchObject({
      code: 0,
      stderr: '',
    });
    expect((await to.bsvc(['restore', file], { env: secrets })).code).toBe(0);

    const embedded = openEngine({ dataDir: join(to.dir, 'data'), durability: 'relaxed' });
    const rawOf = (db: Pick<Db, 'collection'>): Promise<Document[]> =>
      db.collection('extras').find({}, { raw: true }).sort({ _id: 1 }).toArray();
    const before = await rawOf(source!.db('bsvc'));
    expect(before).toHaveLength(values.length);
    expect(await rawOf(target!.db('bsvc'))).toEqual(before);
    expect(await rawOf(embedded.db('bsvc') as unknown as Db)).toEqual(before);

    await Promise.all([source!.close(), target!.close()]);
    await Promise.all([...engines, embedded].map((engine) => engine.close()));
    from.remove();
    to.remove();
  });
});

describe('a restore that was killed', () => {
  it('leaves a store that is not served, and is repeated as it was called, without a confirmation', async () => {
    const large = openCliHome();
    await large.bsvc(['project', 'create', 'shop']);
    await large.bsvc(['collection', 'add', 'posts', '--project', 'shop', '--flexible']);
    const stdin = Array.from({ length: 20_000 }, (_, n) => `{"n":${n}}\n`).join('');
    await large.bsvc(['data', 'import', 'posts', '-', '--format', 'ndjson', '--project', 'shop'], { stdin });
    const upload = join(large.dir, 'data', 'files', 'p1', 'photo');
    mkdirSync(dirname(upload), { recursive: true });
    writeFileSync(upload, 'bytes');
    await large.bsvc(['backup', '--out', 'large.backup']);
    const file = join(large.dir, 'large.backup');

    const third = openCliHome();
    const dataDir = join(third.dir, 'data');
    const engine = openEngine({ dataDir, durability: 'relaxed' });
    const { code } = await runBinary(['restore', file], {
      env: { BSVC_DATA_DIR: dataDir, BSVC_DURABILITY: 'relaxed' },
      onStart: (child) =>
        void eventually('some of it is stored', () => engine.stats().documents > 2000 && child.kill('SIGKILL')),
    });
    expect(code).toBeNull();
    expect(engine.stats().documents).toBeLessThan(20_000);
    await engine.close();
    const draft = join(dataDir, 'files', 'p1', '.restore-1.part');
    mkdirSync(dirname(draft), { recursive: true });
    writeFileSync(draft, 'half');
    for (const words of [['project', 'list'], ['backup'], ['serve', '--port', '0']]) {
      const refused = await third.bsvc(words);
      expect({ words, code: refused.code, stderr: refused.stderr }).toEqual({
        words,
        code: 1,
        stderr: expect.stringContaining('run "bsvc restore" again') as string,
      });
    }
    expect((await third.bsvc(['restore', file])).code).toBe(0);
    expect((await third.bsvc(['data', 'query', 'posts', '--project', 'shop', '--count', '-q'])).stdout).toBe('20000\n');
    expect(readdirSync(dirname(draft))).toEqual(['photo']);
    expect((await third.bsvc(['restore', file])).code).toBe(2);
    third.remove();
    large.remove();
  });
});

describe('a backup under load', () => {
  it('is as of one moment: of numbers written one after the other it holds the first ones without a gap', async () => {
    const env = { BSVC_DATA_DIR: join(home.dir, 'data'), BSVC_LOG_LEVEL: 'warn', BSVC_RATE_LIMIT: 'off' };
    await home.bsvc(['collection', 'add', 'steps', '--project', 'shop', '--flexible']);
    const service = await startService(['serve', '--port', '0'], env);
    let writing = true;
    let written = 0;
    const load = (async () => {
      while (writing) {
        const reply = await fetch(`${service.ready.url}/api/data/steps`, {
          method: 'POST',
          headers: { 'x-api-key': secret, 'content-type': 'application/json' },
          body: JSON.stringify({ step: written }),
        });
        if (reply.status !== 201) throw new Error(`answered ${reply.status}`);
        written++;
      }
    })();
    const atLeast = (count: number) => eventually(`${count} documents are written`, () => written >= count);
    await atLeast(20);
    const before = written;
    const { code } = await runBinary(['backup', '--out', path('load.backup')], { env });
    const after = written;
    await atLeast(after + 1);
    writing = false;
    await load;
    await service.stop();
    expect(code).toBe(0);
    const third = openCliHome();
    await third.bsvc(['restore', path('load.backup')]);
    const { stdout } = await third.bsvc(['data', 'export', 'steps', '--project', 'shop']);
    const steps = stdout
      .trimEnd()
      .split('\n')
      .map((line) => (JSON.parse(line) as { step: number }).step)
      .sort((a, b) => a - b);
    expect(steps).toEqual(steps.map((_, index) => index));
    expect(steps.length).toBeGreaterThanOrEqual(before);
    expect(steps.length).toBeLessThanOrEqual(after + 1);
    third.remove();
  });
});
