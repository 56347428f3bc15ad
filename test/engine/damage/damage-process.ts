/**
 * Reads and changes damaged copies of a store, one after the other, and says after each step what came of it: a line of
 * JSON. Arguments: the whole store's directory, one for the copies, and the bits to change as `byte:bit`.
 */
import { createHash } from 'node:crypto';
import { copyFileSync, mkdirSync, rmSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { type Engine, openEngine, verifyDataFile } from '../../../src/engine/index.js';
import { flipBit } from '../page-map.js';
import { COLLECTIONS, DOCUMENTS, GROUPS, type Outcome, type Stored } from './damaged-store.js';

const [source, copies, flips] = process.argv.slice(2) as [string, string, string];
const WRITES = 1_000;
const AT_ONCE = 50;

const say = (outcome: Outcome): void => void writeSync(1, `${JSON.stringify(outcome)}\n`);

async function readAll(engine: Engine): Promise<Record<string, string>> {
  const reads: Record<string, string> = {};
  for (const name of COLLECTIONS) {
    const items = engine.db('d').collection<Stored>(name);
    const note = async (way: string, read: () => Promise<unknown>): Promise<void> => {
      reads[`${name} ${way}`] = await read().then(
        (rows) => createHash('sha1').update(JSON.stringify(rows)).digest('hex'),
        (error: unknown) => `error: ${(error as Error).message}`,
      );
    };
    const each = <T>(count: number, read: (n: number) => Promise<T>): Promise<T[]> =>
      Promise.all(Array.from({ length: count }, (_, n) => read(n)));
    await note('all', () => items.find().toArray());
    await note('list', () => each(GROUPS, (group) => items.find({ group }).sort({ _id: -1 }).toArray()));
    await note('count', () => each(GROUPS, (group) => items.countDocuments({ group })));
    await note('total', () => items.countDocuments({}));
    await note('unique', () => each(DOCUMENTS / 2, (n) => items.findOne({ slot: `${name} ${n * 2}` })));
    await note('get', () => each(DOCUMENTS / 2, (n) => items.findOne({ _id: n * 2 })));
  }
  return reads;
}

async function writeAll(engine: Engine): Promise<NonNullable<Outcome['writes']>> {
  const writes = Object.fromEntries(COLLECTIONS.map((name) => [name, { done: 0, errors: [] as string[] }]));
  const write = async (n: number): Promise<void> => {
    const name = COLLECTIONS[n % COLLECTIONS.length]!;
    const items = engine.db('d').collection<Stored>(name);
    const id = (n * 7) % DOCUMENTS;
    try {
      if (n % 10 === 9) {
        await items.insertOne({
          _id: 10_000 + n,
          group: n % GROUPS,
          slot: `new ${n}`,
          views: 0,
          isDeleted: false,
          text: 'x'.repeat(n),
        });
      } else if (n % 25 === 3) {
        await items.deleteOne({ _id: id });
      } else {
        await items.updateOne({ _id: id }, { $inc: { views: 1 }, $set: { group: n % GROUPS } });
      }
      writes[name]!.done++;
    } catch (error) {
      writes[name]!.errors.push((error as Error).message);
    }
  };
  for (let n = 0; n < WRITES; n += AT_ONCE)
    await Promise.all(Array.from({ length: AT_ONCE }, (_, at) => write(n + at)));
  return writes;
}

for (const flip of flips.split(',')) {
  const [at, bit] = flip.split(':').map(Number) as [number, number];
  const dataDir = join(copies, String(at));
  mkdirSync(dataDir, { recursive: true });
  copyFileSync(join(source, 'bsvc.mdb'), join(dataDir, 'bsvc.mdb'));
  if (bit >= 0) flipBit(dataDir, at, bit);
  const outcome: Outcome = { at };
  outcome.deep = await verifyDataFile(dataDir);
  say(outcome);
  try {
    const engine = openEngine({ dataDir, durability: 'relaxed', countBy: 'isDeleted' });
    outcome.reads = await readAll(engine);
    say(outcome);
    outcome.writes = await writeAll(engine);
    say(outcome);
    outcome.readsAfter = await readAll(engine);
    const refusal = engine.refusal();
    if (refusal !== null) outcome.refused = refusal;
    await engine.close();
  } catch (error) {
    outcome.refused = (error as Error).message;
  }
  outcome.deepAfter = await verifyDataFile(dataDir);
  say(outcome);
  rmSync(dataDir, { recursive: true, force: true });
}
