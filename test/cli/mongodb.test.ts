import { afterEach, describe, expect, it, vi } from 'vitest';
import { buildInfo, helloCommand, isMaster } from '../../src/engine/commands/handshake.js';
import { find } from '../../src/engine/commands/read/find.js';
import { createIndexes } from '../../src/engine/commands/indexes.js';
import { EngineError } from '../../src/engine/errors.js';
import { openEngine } from '../world/engine.js';
import { listenToCommands, type SeenCommand } from '../helpers/command-log.js';
import { startMongodbDouble, type MongodbDouble } from '../helpers/mongodb-double.js';
import { runBinary } from '../helpers/run-binary.js';
import { openCliHome } from '../helpers/run-cli.js';
import { startTcpProxy } from '../helpers/tcp-proxy.js';
import { use } from '../helpers/use.js';

/** As MongoDB itself introduces what it was built from. */
const MONGODB = { version: '7.0.14', modules: [], javascriptEngine: 'mozjs', allocator: 'tcmalloc' };
const home = use(openCliHome());
const cleanUps: (() => unknown)[] = [];
afterEach(async () => {
  for (const cleanUp of cleanUps.splice(0).reverse()) await cleanUp();
  vi.restoreAllMocks();
});

const SECRET = 'a-master-key-for-tests-only-0123456789';
const bsvc = (uri: string, ...words: string[]) =>
  home.bsvc(words, { env: { MONGODB_URI: uri, BSVC_SECRET_KEY: SECRET } });

interface Check {
  name: string;
  ok: boolean;
  detail: string;
  hint: string | null;
}
const databaseCheck = (report: { checks: Check[] }): Check => report.checks.find(({ name }) => name === 'database')!;

const PRIMARY = { isWritablePrimary: true, maxWireVersion: 13, minWireVersion: 0, helloOk: true };

async function openDouble(answers: Record<string, object>): Promise<MongodbDouble> {
  const double = await startMongodbDouble(answers);
  cleanUps.push(() => double.close());
  return double;
}

describe('a MongoDB that is too old', () => {
  it.each([['serve', '--port', '0'], ['worker'], ['project', 'list'], ['migrate']])(
    'is refused by bsvc %s with exit 3 and advice, before anything is read or written',
    async (...words) => {
      const double = await openDouble({ hello: PRIMARY, buildInfo: { version: '5.0.31' } });
      const { code, stderr } = await bsvc(double.uri, ...words);
      expect({ code, stderr }).toEqual({ code: 3, stderr: expect.stringContaining('needs 6.0 or newer') as string });
      expect(double.asked).toEqual(['buildInfo']);
    },
  );

  it('fails bsvc doctor, which says the same', async () => {
    const double = await openDouble({ hello: PRIMARY, buildInfo: { version: '5.0.31' } });
    const { code, json } = await bsvc(double.uri, 'doctor', '--json');
    expect(code).toBe(3);
    expect(databaseCheck(json())).toMatchObject({
      ok: false,
      detail: expect.stringContaining('MongoDB 5.0.31') as string,
    });
  });

  it('is refused in the same words when not even the driver speaks its language', async () => {
    const double = await openDouble({ hello: { ...PRIMARY, maxWireVersion: 4 }, buildInfo: { version: '3.2.0' } });
    const { code, stderr } = await bsvc(double.uri, 'project', 'list');
    expect({ code, stderr }).toEqual({ code: 3, stderr: expect.stringContaining('6.0 or newer') as string });
  });
});

describe('a secondary that is named alone', () => {
  it('is refused with exit 3', async () => {
    const hello = {
      ...PRIMARY,
      maxWireVersion: 21,
      isWritablePrimary: false,
      secondary: true,
      setName: 'rs0',
      hosts: ['a:1'],
    };
    const double = await openDouble({ hello, buildInfo: { version: '7.0.14' } });
    const { code, stderr } = await bsvc(double.uri, 'project', 'list');
    expect({ code, stderr }).toEqual({
      code: 3,
      stderr: expect.stringContaining('leave out directConnection') as string,
    });
  });
});

describe('a standalone MongoDB', () => {
  it.each([[['project', 'list']], [['serve', '--port', '0']], [['worker']], [['doctor']]])(
    'is refused by %j with exit 3 and the commands that mend it',
    async (words) => {
      const double = await openDouble({ hello: { ...PRIMARY, maxWireVersion: 21 }, buildInfo: MONGODB });
      const { code, stdout, stderr } = await bsvc(double.uri, ...words);
      expect(code).toBe(3);
      expect(stdout + stderr).toMatch(/standalone.*mongod --replSet rs0.*rs\.initiate\(\)/s);
    },
  );
});

describe('a replica set', () => {
  it('is told apart by its hello; writes can be repeated and wait for a majority, indexes too', async () => {
    const engine = openEngine({ dataDir: `${home.dir}/set`, durability: 'relaxed' });
    cleanUps.push(() => engine.close());
    const { uri } = await engine.listen('127.0.0.1:0');
    const host = new URL(uri.replace('mongodb:', 'http:')).host;
    const say = { setName: 'rs0', hosts: [host], me: host, primary: host, secondary: false };
    for (const command of [helloCommand, isMaster]) {
      const real = command.run.bind(command);
      vi.spyOn(command, 'run').mockImplementation(async (call, body) => ({ ...(await real(call, body)), ...say }));
    }
    vi.spyOn(buildInfo, 'run').mockReturnValue(MONGODB);
    const commands = listenToCommands();
    cleanUps.push(commands.stop);
    expect((await bsvc(uri, 'project', 'create', 'shop')).code).toBe(0);
    expect((await bsvc(uri, 'collection', 'add', 'posts', '--project', 'shop', '--field', 'a:String')).code).toBe(0);
    const { json } = await bsvc(uri, 'doctor', '--json');
    expect(databaseCheck(json())).toMatchObject({
      detail: 'MongoDB 7.0.14, replica set rs0 with 1 member answers',
      hint: null,
    });
    const writes = commands.named('insert', 'update', 'delete', 'findAndModify');
    expect(writes.length).toBeGreaterThan(0);
    const writeConcern = { w: 'majority', wtimeout: 10_000 };
    // No driver repeats a write of many documents by itself; migrations, which have such writes, are repeated as a
    // whole.
    const isMany = ({ updates }: SeenCommand['body']): boolean =>
      ((updates ?? []) as { multi?: boolean }[]).some(({ multi }) => multi);
    for (const { body } of writes)
      expect(body).toMatchObject(isMany(body) ? { writeConcern } : { writeConcern, txnNumber: expect.anything() });
    for (const { body } of commands.named('createIndexes')) expect(body).toMatchObject({ commitQuorum: 'majority' });
  });
});

describe('a sharded collection', () => {
  it('takes no unique field: 409 with the reason, and everything stays as it was', async () => {
    expect((await home.bsvc(['project', 'create', 'shards'])).code).toBe(0);
    const words = ['collection', 'add', 'posts', '--project', 'shards', '--field', 'a:String'];
    expect((await home.bsvc(words)).code).toBe(0);
    const build = createIndexes.run.bind(createIndexes);
    vi.spyOn(createIndexes, 'run').mockImplementation((call, body) => {
      const unique = (body.indexes as { unique?: boolean }[]).some((index) => index.unique);
      if (unique) throw new EngineError(67, 'cannot create unique index with the shard key of the collection');
      return build(call, body);
    });
    const edit = ['collection', 'edit', 'posts', '--project', 'shards', '--add-field', 'b:String&', '--json'];
    const { code, stderr } = await home.bsvc(edit);
    expect({ code, stderr }).toEqual({ code: 1, stderr: expect.stringContaining('nothing unique but') as string });
    const shown = (await home.bsvc(['collection', 'show', 'posts', '--project', 'shards', '--json'])).stdout;
    expect(shown).not.toContain('"b"');
  });
});

describe('a MongoDB that goes away in the middle of a command', () => {
  it('is exit 3 before the half minute that a driver waits by itself', async () => {
    const engine = openEngine({ dataDir: `${home.dir}/away`, durability: 'relaxed' });
    cleanUps.push(() => engine.close());
    const { port } = new URL((await engine.listen('127.0.0.1:0')).uri.replace('mongodb:', 'http:'));
    const cable = await startTcpProxy(Number(port));
    cleanUps.push(() => cable.close());
    const env = { MONGODB_URI: `mongodb://127.0.0.1:${cable.port}/?directConnection=true`, BSVC_SECRET_KEY: SECRET };
    const run = find.run.bind(find);
    vi.spyOn(find, 'run').mockImplementation(async (call, body) => {
      // By then the act is recorded as begun.
      if (body.find === 'projects') await cable.cut();
      return run(call, body);
    });
    const stop = AbortSignal.timeout(25_000);
    const { code, stdout, stderr } = await runBinary(['project', 'update', 'shop', '--plan', 'pro'], {
      env,
      onStart: (child) => stop.addEventListener('abort', () => child.kill('SIGKILL')),
    });
    expect({ code, stdout, stderr }).toEqual({
      code: 3,
      stdout: '',
      stderr: expect.stringContaining('The database is unavailable') as string,
    });
  });
});
