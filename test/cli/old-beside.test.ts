import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { afterAll, beforeEach, describe, expect, it } from 'vitest';
import type { App } from '../../src/app.js';
import { MIGRATIONS } from '../../src/migrations/index.js';
import type { Store } from '../../src/platform/database/database.js';
import { makeFormatOne } from '../engine/format-one.js';
import { runBinary, runOrThrow, startService } from '../helpers/run-binary.js';
import { openTempDir, type TempDir } from '../helpers/temp-dir.js';
import { withApp } from '../helpers/with-app.js';

/**
 * What a server of an earlier version does to the file, by LMDB alone: on each line it looks whether the file has the
 * format that it knows, reads everything, and changes a record of its own. Says what it found.
 */
const EARLIER = `
import { createInterface } from 'node:readline';
import { open } from ${JSON.stringify(import.meta.resolve('lmdb'))};
const store = open({ path: process.argv[2], noSubdir: true, keyEncoding: 'binary', encoding: 'binary', overlappingSync: false });
const own = Buffer.from([1, ...Buffer.from('zz-earlier')]);
let n = 0;
console.log('open');
for await (const _line of createInterface({ input: process.stdin })) {
  store.resetReadTxn();
  const format = store.getBinary(Buffer.from([1, ...Buffer.from('format')]));
  const isKnown = format.indexOf(Buffer.from([16, ...Buffer.from('format'), 0, 1, 0, 0, 0])) > 0;
  const count = [...store.getRange({ start: Buffer.from([16]), end: Buffer.from([17]) })].length;
  store.transactionSync(() => store.putSync(own, Buffer.from([n++])));
  console.log(isKnown ? 'reads ' + count : 'another format');
}
await store.close();
`;

/** Commands that look, and what reads data; none may change the format. */
const LOOKING = [
  ['migrate', 'status'],
  ['doctor', '--json'],
  ['project', 'list'],
  ['settings'],
  ['data', 'export', 'notes', '--format', 'ndjson'],
  ['data', 'query', 'notes'],
  ['collection', 'list'],
];

const dirs: TempDir[] = [];
let data: string;
let env: Record<string, string>;
let program: string;

beforeEach(async () => {
  const dir = await openTempDir();
  dirs.push(dir);
  data = join(dir.path, 'data');
  program = join(dir.path, 'earlier.mjs');
  writeFileSync(program, EARLIER);
  env = {
    BSVC_DATA_DIR: data,
    BSVC_DURABILITY: 'relaxed',
    BSVC_PROJECT: 'shop',
    BSVC_PORT: '0',
    BSVC_LOG_LEVEL: 'error',
  };
  await runOrThrow(['project', 'create', 'shop'], env);
  await runOrThrow(['collection', 'add', 'notes', '--flexible'], env);
  const stdin = Array.from({ length: 50 }, (_, n) => `{"n":${n}}\n`).join('');
  await runBinary(['data', 'import', 'notes', '-', '--format', 'ndjson'], { env, stdin });
  await makeFormatOne(data);
});
afterAll(() => Promise.all(dirs.map((dir) => dir.remove())));

interface Earlier {
  process: ChildProcess;
  /** What it finds now. */
  ask(): Promise<string>;
  stop(): Promise<void>;
}

async function startEarlier(): Promise<Earlier> {
  const child = spawn(process.execPath, [program, join(data, 'bsvc.mdb')], { stdio: ['pipe', 'pipe', 'inherit'] });
  const lines = createInterface({ input: child.stdout! })[Symbol.asyncIterator]();
  const line = async (): Promise<string> => String((await lines.next()).value);
  expect(await line()).toBe('open');
  return {
    process: child,
    ask() {
      child.stdin!.write('go\n');
      return line();
    },
    async stop() {
      child.stdin!.end();
      await once(child, 'close');
    },
  };
}

describe('a store of an earlier version', () => {
  it('is read by commands of this one beside two servers of that version, which go on; who would convert it waits for their end', async () => {
    const servers = [await startEarlier(), await startEarlier()];
    const before = await servers[0]!.ask();
    expect(before).toMatch(/^reads \d+$/);
    for (const words of LOOKING) {
      const { code } = await runBinary(words, { env });
      // The doctor has something to say about any store without backups.
      if (words[0] !== 'doctor') expect([words.join(' '), code]).toEqual([words.join(' '), 0]);
      expect(await Promise.all(servers.map((server) => server.ask()))).toEqual([before, before]);
    }
    const write = await runBinary(['data', 'insert', 'notes', '{"n":1}'], { env });
    expect([write.code, write.stderr]).toEqual([
      3,
      expect.stringContaining('make a backup before, by "bsvc backup make --out <file>"'),
    ]);
    const serve = await runBinary(['serve'], { env });
    expect([serve.code, serve.stderr]).toEqual([3, expect.stringContaining('end ')]);
    expect(await servers[0]!.ask()).toBe(before);
    await Promise.all(servers.map((server) => server.stop()));
    const server = await startService(['serve'], env);
    expect((await runOrThrow(['data', 'export', 'notes', '--format', 'ndjson'], env)).split('\n')).toHaveLength(50);
    expect(await server.stop()).toBe(0);
    expect((await runBinary(['doctor', '--deep', '--json'], { env })).stdout).toContain('"name":"content","ok":true');
  });

  it('is kept for a server of that version that starts after a command of this one', async () => {
    await runOrThrow(['project', 'list'], env);
    const earlier = await startEarlier();
    expect(await earlier.ask()).toMatch(/^reads \d+$/);
    await runOrThrow(['data', 'query', 'notes'], env);
    expect(await earlier.ask()).toMatch(/^reads \d+$/);
    await earlier.stop();
  });

  it('can be copied by a backup of this version before it is converted', async () => {
    const file = join(data, '..', 'before.backup');
    expect((await runBinary(['backup', 'make', '--out', file], { env })).code).toBe(0);
    const earlier = await startEarlier();
    expect(await earlier.ask()).toMatch(/^reads \d+$/);
    await earlier.stop();
    await runOrThrow(['migrate', 'up'], env);
    expect((await runOrThrow(['data', 'export', 'notes', '--format', 'ndjson'], env)).split('\n')).toHaveLength(50);
    expect((await runBinary(['restore', file, '--verify'], { env })).code).toBe(0);
  });

  it('keeps its migrations for serve, worker and migrate up, and for when nobody else has it open', async () => {
    await runOrThrow(['migrate', 'up'], env);
    const ids = MIGRATIONS.slice(-2).map(({ id }) => id);
    const stored = (app: App): Store<{ _id: string }> => app.db.collection<{ _id: string }>('migrations');
    // This process is the server of the earlier version.
    await withApp(env, async (app) => {
      await stored(app).deleteMany({ _id: { $in: ids } });
      for (const words of [...LOOKING, ['backup', 'make', '--out', join(data, '..', 'waiting.backup')]]) {
        const { code, stderr } = await runBinary(words, { env });
        if (words[0] !== 'doctor') expect([words.join(' '), code, stderr]).toEqual([words.join(' '), 0, '']);
      }
      const insert = await runBinary(['data', 'insert', 'notes', '{"n":1}'], { env });
      expect([insert.code, insert.stderr]).toEqual([3, expect.stringContaining(`2 migrations (${ids.join(', ')})`)]);
      const converting = [['migrate', 'up'], ['serve'], ['worker'], ['serve', '--migrate']];
      const refused = await Promise.all(converting.map((words) => runBinary(words, { env })));
      for (const { code, stderr } of refused) {
        expect([code, stderr]).toEqual([3, expect.stringMatching(new RegExp(`end (\\d+, )*${process.pid}`))]);
      }
      expect(await stored(app).countDocuments({ _id: { $in: ids } })).toBe(0);
    });
    // At once: whoever comes first runs them, and the other finds them done.
    const started = await Promise.all([startService(['serve', '--no-worker'], env), startService(['worker'], env)]);
    await runOrThrow(['data', 'insert', 'notes', '{"n":1}'], env);
    for (const each of started) expect(await each.stop()).toBe(0);
    expect(await withApp(env, (app) => stored(app).countDocuments({ _id: { $in: ids } }))).toBe(2);
  });
});
