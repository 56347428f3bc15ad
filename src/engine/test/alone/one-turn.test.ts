import { execFileSync, spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, mkdirSync, openSync, readSync, rmSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { buildSync } from 'esbuild';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { type Engine, openEngine } from '../../index.js';
import { BATCH_SIZE, batchOf, type Item } from '../one-turn.js';
import { temporaryDir } from '../transports.js';

const dataDir = temporaryDir();
const built = join(import.meta.dirname, '../../../..', 'node_modules', `.one-turn-${process.pid}`);
const EARLY_BATCHES = 5;
/** How many steps of promises a command makes before another process commits; most have ended after the last. */
const STEPS = [1, 2, 3, 4, 8, 15, 30];

type Batches = { batch: string }[];

/** Each answers with lists of which all are of one moment when each batch is whole, or there twice, or not at all. */
const READS: Record<string, (engine: Engine) => Promise<Batches>> = {
  group: async (engine) => {
    const found = await itemsOf(engine)
      .aggregate<{ _id: string; n: number }>([
        { $match: { at: { $gte: 0 } } },
        { $group: { _id: '$batch', n: { $sum: 1 } } },
      ])
      .toArray();
    return found.flatMap(({ _id, n }) => Array.from({ length: n }, () => ({ batch: _id })));
  },
  'sort by an index': (engine) =>
    itemsOf(engine)
      .aggregate<Item>([{ $match: { at: { $gte: 0 } } }, { $sort: { at: 1 } }], { batchSize: 10_000 })
      .toArray(),
  'sort without an index': (engine) =>
    itemsOf(engine)
      .aggregate<Item>([{ $match: { at: { $gte: 0 } } }, { $sort: { batch: 1 } }], { batchSize: 10_000 })
      .toArray(),
  union: (engine) =>
    itemsOf(engine)
      .aggregate<Item>([{ $match: { at: { $gte: 500 } } }, { $unionWith: { coll: 'items', pipeline: BELOW_500 } }], {
        batchSize: 10_000,
      })
      .toArray(),
  join: async (engine) => {
    const [all] = await itemsOf(engine)
      .aggregate<{ upper: Batches; lower: Batches }>([
        { $match: { at: { $gte: 500 } } },
        { $group: { _id: null, upper: { $push: { batch: '$batch' } } } },
        { $lookup: { from: 'items', pipeline: BELOW_500, as: 'lower' } },
      ])
      .toArray();
    return [...all!.upper, ...all!.lower];
  },
  near: (engine) =>
    itemsOf(engine)
      .find({ place: { $near: { $geometry: { type: 'Point', coordinates: [0, 0] } } } }, { batchSize: 10_000 })
      .toArray(),
};
const BELOW_500 = [{ $match: { at: { $lt: 500 } } }];

const itemsOf = (engine: Engine) => engine.db('d').collection<Item>('items');

describe('what a command reads within one turn while another process commits', () => {
  let engine: Engine;
  let other: ChildProcess;
  let [requests, answers] = [0, 0];

  beforeAll(async () => {
    mkdirSync(built, { recursive: true });
    const program = join(built, 'process.mjs');
    buildSync({
      entryPoints: [join(import.meta.dirname, '../one-turn-process.ts')],
      outfile: program,
      bundle: true,
      platform: 'node',
      format: 'esm',
      packages: 'external',
    });
    engine = openEngine({ dataDir, durability: 'relaxed' });
    await itemsOf(engine).createIndexes([
      { key: { at: 1 }, name: 'at' },
      { key: { place: '2dsphere' }, name: 'place' },
    ]);
    for (let n = 0; n < EARLY_BATCHES; n++) {
      await engine.insertTogether({ db: 'd', collection: 'items' }, batchOf(`early ${n}`));
    }
    const pipes = ['requests', 'answers'].map((name) => join(built, name));
    execFileSync('mkfifo', pipes);
    [requests, answers] = pipes.map((pipe) => openSync(pipe, 'r+')) as [number, number];
    other = spawn(process.execPath, [program, dataDir, ...pipes], { stdio: ['ignore', 'inherit', 'inherit'] });
    commitElsewhere();
    await itemsOf(engine).deleteMany({ batch: /^late/ });
    // Time that a commit takes ends no turn then.
    vi.useFakeTimers({ toFake: ['performance'] });
  });
  afterAll(async () => {
    vi.useRealTimers();
    const closed = once(other, 'close');
    writeSync(requests, Buffer.of(0));
    await closed;
    for (const pipe of [requests, answers]) closeSync(pipe);
    await engine.close();
    for (const dir of [dataDir, built]) rmSync(dir, { recursive: true, force: true });
  });

  /** Stores a batch from another process, before anything else happens in this one. */
  function commitElsewhere(): void {
    writeSync(requests, Buffer.of(1));
    readSync(answers, Buffer.alloc(1));
  }

  it.each(Object.keys(READS))('is of one moment: %s', async (way) => {
    const parts: string[] = [];
    let seenLater = 0;
    for (const beside of ['alone', 'beside another command']) {
      for (const steps of STEPS) {
        await nextTurn();
        const reading = READS[way]!(engine);
        for (let n = 0; n < steps; n++) await Promise.resolve();
        commitElsewhere();
        const another = beside === 'alone' ? null : itemsOf(engine).findOne({ at: 1 });
        const counts = new Map<string, number>();
        for (const { batch } of await reading) counts.set(batch, (counts.get(batch) ?? 0) + 1);
        await another;
        for (const [batch, count] of counts)
          if (count !== BATCH_SIZE) parts.push(`${beside}, ${steps}: ${batch} ${count}`);
        if (counts.size === EARLY_BATCHES) seenLater++;
        await itemsOf(engine).deleteMany({ batch: /^late/ });
      }
    }
    expect(parts).toEqual([]);
    // Committed behind the beginning of the read.
    expect(seenLater).toBeGreaterThan(STEPS.length);
  });
});
