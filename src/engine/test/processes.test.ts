import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { MongoClient } from 'mongodb';
import { afterEach, describe, expect, it, onTestFinished } from 'vitest';
import { readIndexSpec } from '../commands/index-specs.js';
import { type Engine, openEngine } from '../index.js';
import { openStorage } from '../storage/storage.js';

const engines: Engine[] = [];
const dirs: string[] = [];

function temporaryDir(): string {
  const dir = mkdtempSync(join(tmpdir(), 'bsvc-engine-'));
  dirs.push(dir);
  return dir;
}

function open(dataDir: string): Engine {
  const engine = openEngine({ dataDir });
  engines.push(engine);
  return engine;
}

/** A script that opens the data directory, says so, and stays. Without the chores of an engine it finishes no index. */
function opener(dataDir: string): string {
  return `
    import { openStorage } from ${JSON.stringify(join(import.meta.dirname, '../storage/storage.ts'))};
    openStorage(${JSON.stringify(dataDir)}, 'full');
    console.log('open');
    setInterval(() => undefined, 60_000);
  `;
}

/** Runs a script in a process of its own, with `open` and the data directory at hand, and gives its last line. */
function runScript(dataDir: string, script: string): Promise<unknown> {
  const source = `
    import { openEngine } from ${JSON.stringify(join(import.meta.dirname, '../index.ts'))};
    const engine = openEngine({ dataDir: ${JSON.stringify(dataDir)} });
    const db = engine.db('shared');
    const answer = await (async () => { ${script} })();
    await engine.close();
    console.log(JSON.stringify(answer ?? null));
  `;
  return new Promise((resolve, reject) => {
    const child = spawn(process.execPath, ['--import', 'tsx', '--input-type=module', '-e', source], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    let output = '';
    child.stdout.on('data', (chunk: Buffer) => (output += chunk.toString()));
    child.on('error', reject);
    child.on('close', (code) => {
      if (code === 0) resolve(JSON.parse(output.trim().split('\n').at(-1)!));
      else reject(new Error(`the script ended with ${String(code)}`));
    });
  });
}

afterEach(async () => {
  await Promise.all(engines.splice(0).map((engine) => engine.close()));
  for (const dir of dirs.splice(0)) rmSync(dir, { recursive: true, force: true });
});

describe('several processes on one data directory', () => {
  it('sees what another process wrote, and the indexes it made', async () => {
    const dir = temporaryDir();
    const people = open(dir).db('shared').collection('people');
    await people.insertOne({ email: 'a@x.test' });
    const seen = await runScript(
      dir,
      `const people = db.collection('people');
       await people.createIndex({ email: 1 }, { unique: true });
       await people.insertOne({ email: 'b@x.test' });
       return people.countDocuments();`,
    );
    expect(seen).toBe(2);
    expect(await people.countDocuments({ email: 'b@x.test' })).toBe(1);
    await expect(people.insertOne({ email: 'b@x.test' })).rejects.toMatchObject({ code: 11000 });
  });

  it('keeps a unique index unique when several processes insert the same values at once', async () => {
    const dir = temporaryDir();
    const taken = open(dir).db('shared').collection('taken');
    await taken.createIndex({ slot: 1 }, { unique: true });
    const script = `
      let won = 0;
      for (let slot = 0; slot < 300; slot++) {
        try { await db.collection('taken').insertOne({ slot }); won++; } catch (error) { if (error.code !== 11000) throw error; }
      }
      return won;`;
    const won = (await Promise.all([
      runScript(dir, script),
      runScript(dir, script),
      runScript(dir, script),
    ])) as number[];
    expect(won.reduce((sum, n) => sum + n, 0)).toBe(300);
    expect(await taken.countDocuments()).toBe(300);
  });

  it('finishes an index whose builder died, even when another process has its id now', async () => {
    const dir = temporaryDir();
    const first = open(dir);
    await first
      .db('shared')
      .collection('c')
      .insertMany([{ n: 1 }, { n: 2 }]);
    await first.close();
    // As in a container whose service was killed and begins anew: the id of the dead builder is that of this process.
    await leaveHalfBuilt(dir, process.pid);
    const items = open(dir).db('shared').collection('c');
    await items.createIndex({ n: 1 });
    expect(await items.find({ n: 2 }).explain()).toMatchObject({ queryPlanner: { winningPlan: { stage: 'FETCH' } } });
  });

  it('finishes an index whose building was cut off by closing', async () => {
    const dir = temporaryDir();
    const engine = open(dir);
    const client = await MongoClient.connect((await engine.listen('127.0.0.1:0')).uri);
    const items = engine.db('shared').collection('c');
    await items.insertMany(Array.from({ length: 20_000 }, (_, n) => ({ n })));
    // Cut off, unless the machine was so fast that it is done.
    const building = client
      .db('shared')
      .collection('c')
      .createIndex({ n: 1 })
      .catch(() => null);
    const isAsked = async (): Promise<boolean> => (await items.indexes()).some((index) => index.name === 'n_1');
    await expect.poll(isAsked, { interval: 1 }).toBe(true);
    await engine.close();
    await building;
    await client.close();
    const again = open(dir);
    await again.db('shared').collection('c').createIndex({ n: 1 });
    expect(await again.verify()).toEqual([]);
    expect(await again.db('shared').collection('c').find().hint('n_1').toArray()).toHaveLength(20_000);
  });

  it('gives up waiting for an index that another process builds when the time is over', async () => {
    const dir = temporaryDir();
    const items = open(dir).db('shared').collection('c');
    await items.insertOne({ n: 1 });
    const other = spawn(process.execPath, ['--import', 'tsx', '--input-type=module', '-e', opener(dir)]);
    onTestFinished(() => void other.kill('SIGKILL'));
    await once(other.stdout, 'data');
    await leaveHalfBuilt(dir, other.pid!);
    const command = { createIndexes: 'c', indexes: [{ key: { n: 1 }, name: 'n_1' }], maxTimeMS: 30 };
    await expect(engines.at(-1)!.db('shared').command(command)).rejects.toMatchObject({ code: 50 });
    other.kill('SIGKILL');
    await once(other, 'close');
    await engines.pop()!.close();
    const again = open(dir);
    await again.db('shared').collection('c').createIndex({ n: 1 });
    expect(await again.verify()).toEqual([]);
  });

  it('finishes an index whose builder’s id belongs to a process that does not use the data directory', async () => {
    const dir = temporaryDir();
    const first = open(dir);
    await first.db('shared').collection('c').insertOne({ n: 1 });
    await first.close();
    await leaveHalfBuilt(dir, process.ppid);
    const items = open(dir).db('shared').collection('c');
    await items.createIndex({ n: 1 });
    expect(await items.countDocuments({ n: 1 })).toBe(1);
  });
});

/** Leaves an index on `n` of `shared.c` as a process that is killed in the middle of building it does. */
async function leaveHalfBuilt(dir: string, builder: number): Promise<void> {
  const storage = openStorage(dir, 'full');
  await storage.queue.write(() => {
    const { definition } = storage.catalog.find('shared.c')!;
    const index = readIndexSpec({ key: { n: 1 }, name: 'n_1' });
    storage.catalog.save({
      ...definition,
      indexes: [{ ...index, id: storage.catalog.takeId(), state: 'building', builder }],
    });
  });
  await storage.close();
}
