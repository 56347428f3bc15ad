import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { type Engine, openEngine } from '../../src/engine/index.js';
import { openStorage } from '../../src/engine/storage/storage.js';
import { eventually } from '../helpers/eventually.js';
import { openRandom } from '../helpers/random.js';
import { temporaryDir } from './transports.js';
import { makeFormatOne } from './format-one.js';

/** A script that has the store open for reading alone, says so, and stays. */
function opener(dataDir: string): string {
  return `
    import { openEngine } from ${JSON.stringify(join(import.meta.dirname, '../../src/engine/index.ts'))};
    openEngine({ dataDir: ${JSON.stringify(dataDir)}, upgrade: false });
    console.log('open');
    setInterval(() => undefined, 60_000);
  `;
}

const DOCUMENTS = 4_000;
const KILLS = 4;
const SEED = 20_261_122;

interface Item {
  _id: number;
  n: number;
  trashed: boolean;
  tag: string;
}

describe('a store of format 1', () => {
  let dataDir: string;

  beforeEach(async () => {
    dataDir = temporaryDir();
    const engine = openEngine({ dataDir, durability: 'relaxed' });
    const items = engine.db('old').collection<Item>('items');
    await items.createIndexes([
      { key: { n: 1 }, name: 'n', unique: true },
      { key: { tag: 1 }, name: 'tag' },
      { key: { tag: 1, n: -1 }, name: 'active', partialFilterExpression: { trashed: false } },
    ]);
    await items.insertMany(Array.from({ length: DOCUMENTS }, (_, n) => itemOf(n)));
    await engine.db('old').createCollection('empty');
    await engine.close();
    await makeFormatOne(dataDir);
  });

  afterEach(() => {
    rmSync(dataDir, { recursive: true, force: true });
  });

  const itemOf = (n: number): Item => ({ _id: n, n, trashed: n % 4 === 0, tag: `tag ${n % 50}` });
  const openConverted = async (): Promise<Engine> => {
    const engine = openEngine({ dataDir, countBy: 'trashed' });
    await eventually('everything has its checksum', () => isConverted());
    return engine;
  };

  function isConverted(): boolean {
    const storage = openStorage(dataDir, 'relaxed');
    storage.refresh();
    const done = storage.catalog.list('').every(({ definition }) => definition.checked === true);
    void storage.close();
    return done;
  }

  it('is read, written and counted while it is converted, and verified afterwards', async () => {
    const engine = openEngine({ dataDir, countBy: 'trashed' });
    const items = engine.db('old').collection<Item>('items');
    expect(await items.findOne({ _id: 7 })).toEqual(itemOf(7));
    expect(await items.findOne({ n: 8 })).toEqual(itemOf(8));
    expect(await items.countDocuments({ trashed: true })).toBe(DOCUMENTS / 4);
    await items.updateOne({ _id: 9 }, { $set: { trashed: true } });
    await items.deleteOne({ _id: 4 });
    expect(await items.countDocuments({ tag: 'tag 3' })).toBe(DOCUMENTS / 50);
    await eventually('everything has its checksum', () => isConverted());
    expect(await engine.verify()).toEqual([]);
    expect(await items.countDocuments({ trashed: true })).toBe(DOCUMENTS / 4);
    expect(await items.countDocuments({ trashed: false })).toBe((DOCUMENTS / 4) * 3 - 1);
    expect(await items.find().toArray()).toHaveLength(DOCUMENTS - 1);
    await engine.close();
  });

  it('is only read by what may not convert it, and not converted while another process has it open', async () => {
    const reader = openEngine({ dataDir, upgrade: false });
    const items = reader.db('old').collection<Item>('items');
    expect(await items.findOne({ n: 8 })).toEqual(itemOf(8));
    expect(await items.countDocuments({ tag: 'tag 3' })).toBe(DOCUMENTS / 50);
    await expect(items.updateOne({ _id: 9 }, { $set: { tag: 'no' } })).rejects.toMatchObject({ code: 'READ_ONLY' });
    expect(await reader.verify()).toEqual([]);
    const beside = spawn(process.execPath, ['--import', 'tsx', '--input-type=module', '-e', opener(dataDir)], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    await once(beside.stdout, 'data');
    expect(() => openEngine({ dataDir })).toThrow(expect.objectContaining({ code: 'SHARED' }));
    expect(await items.findOne({ n: 8 })).toEqual(itemOf(8));
    beside.kill('SIGKILL');
    await once(beside, 'close');
    await reader.close();
    const engine = await openConverted();
    expect(await engine.verify()).toEqual([]);
    await engine.close();
  });

  it('is converted by several processes at once, without counting anything twice', async () => {
    const engines = [openEngine({ dataDir, countBy: 'trashed' }), openEngine({ dataDir, countBy: 'trashed' })];
    const child = startWriter(0, 200);
    await Promise.all([eventually('everything has its checksum', () => isConverted()), child]);
    expect(await engines[0]!.verify()).toEqual([]);
    for (const engine of engines) await engine.close();
  });

  it('is converted although every process that begins it is killed, and loses no write meanwhile', async () => {
    const random = openRandom(SEED);
    const last = new Map<number, string>();
    for (let round = 0; round < KILLS; round++) {
      for (const line of await startWriter(round, 5 + random.below(60))) {
        const [what, id] = line.split(' ') as [string, string];
        last.set(Number(id), what);
      }
    }
    const engine = await openConverted();
    expect(await engine.verify()).toEqual([]);
    const found = new Map(
      (await engine.db('old').collection<Item>('items').find().toArray()).map((doc) => [doc._id, doc]),
    );
    for (let id = 0; id < DOCUMENTS; id++) if (!last.has(id)) expect(found.get(id), String(id)).toEqual(itemOf(id));
    for (const [id, what] of last) {
      if (what === 'upserted') expect(found.has(id), String(id)).toBe(true);
      if (what === 'deleted') expect(found.has(id), String(id)).toBe(false);
      if (what === 'updated' && found.has(id)) expect(found.get(id)!.tag, String(id)).toMatch(/^round/);
    }
    await engine.close();
  });

  /**
   * Runs a writer in a process of its own and kills it when it has reported so many writes; returns what it reported.
   */
  function startWriter(round: number, enough: number): Promise<string[]> {
    const script = join(import.meta.dirname, 'conversion-writer.ts');
    const child = spawn(process.execPath, ['--import', 'tsx', script, dataDir, String(round)], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    const lines: string[] = [];
    let rest = '';
    return new Promise((resolve, reject) => {
      child.on('error', reject);
      child.on('close', (_code, signal) => {
        if (signal === 'SIGKILL') resolve(lines);
        else reject(new Error('the writer ended by itself'));
      });
      child.stdout.on('data', (chunk: Buffer) => {
        const parts = (rest + chunk.toString()).split('\n');
        rest = parts.pop()!;
        lines.push(...parts);
        if (lines.length >= enough) child.kill('SIGKILL');
      });
    });
  }
});
