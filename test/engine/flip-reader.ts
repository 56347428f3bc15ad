/**
 * Reads damaged copies of a data file, one after the other, and says of each what came of it: a line of JSON per copy.
 * Its parent looks whether it lives. Arguments: the directory with the whole file, one for the copies, and the flips as
 * `position:bit`, separated by commas.
 */
import { copyFileSync, mkdirSync, openSync, readSync, rmSync, writeSync, closeSync } from 'node:fs';
import { createHash } from 'node:crypto';
import { join } from 'node:path';
import { type DataCollection, openEngine, verifyDataFile } from '../../src/engine/index.js';

const [source, copies, flips] = process.argv.slice(2) as [string, string, string];
const GROUPS = 20;
const DOCUMENTS = 1_000;

async function digestOf(rows: AsyncIterable<unknown> | Iterable<unknown>): Promise<string> {
  const hash = createHash('sha1');
  for await (const row of rows) hash.update(JSON.stringify(row));
  return hash.digest('hex');
}

async function* each<T>(numbers: number, read: (n: number) => Promise<T>): AsyncGenerator<T> {
  for (let n = 0; n < numbers; n++) yield await read(n);
}

function flip(path: string, position: number, bit: number): void {
  const file = openSync(path, 'r+');
  const byte = Buffer.alloc(1);
  readSync(file, byte, 0, 1, position);
  byte[0]! ^= 1 << bit;
  writeSync(file, byte, 0, 1, position);
  closeSync(file);
}

for (const flipped of flips.split(',')) {
  const [position, bit] = flipped.split(':').map(Number) as [number, number];
  const dataDir = join(copies, String(position));
  mkdirSync(dataDir, { recursive: true });
  const path = join(dataDir, 'bsvc.mdb');
  copyFileSync(join(source, 'bsvc.mdb'), path);
  if (bit >= 0) flip(path, position, bit);
  writeSync(1, `${JSON.stringify({ flipped })}\n`);
  const deep = await verifyDataFile(dataDir);
  const reads: Record<string, string> = {};
  writeSync(1, `${JSON.stringify({ flipped, deep })}\n`);
  const note = async (name: string, read: () => Promise<string>): Promise<void> => {
    reads[name] = await read().catch((error: unknown) => `error: ${(error as Error).message}`);
  };
  try {
    const engine = openEngine({ dataDir, durability: 'relaxed', countBy: 'isDeleted' });
    const items: DataCollection<Record<string, unknown>> = engine.db('d').collection('items');
    await note('scan', () => digestOf(items.find()));
    await note('index', () => digestOf(each(GROUPS, (group) => items.find({ group }).sort({ n: -1 }).toArray())));
    await note('unique', () => digestOf(each(DOCUMENTS, (n) => items.findOne({ slot: `s${n}` }))));
    await note('points', () => digestOf(each(DOCUMENTS, (n) => items.findOne({ _id: n as never }))));
    await note('counts', () => digestOf(each(GROUPS, (group) => items.countDocuments({ group }))));
    const skips = (group: number) => items.find({ group: { $gte: group } }).sort({ group: 1, n: -1 });
    await note('skips', () =>
      digestOf(
        each(5, (n) =>
          skips(n)
            .skip(70 + n * 100)
            .limit(5)
            .toArray(),
        ),
      ),
    );
    const either = (n: number) => ({
      $or: [{ group: n }, { slot: `s${n * 7}` }, { group: { $gt: 17 }, n: { $lt: 100 } }],
    });
    await note('unions', () => digestOf(each(GROUPS, (n) => items.countDocuments(either(n)))));
    await note('distinct', async () => digestOf(await items.distinct('group')));
    writeSync(1, `${JSON.stringify({ flipped, deep, reads })}\n`);
    await note('writes', async () => {
      for (let n = 0; n < 100; n++) await items.updateOne({ _id: (n * 9) as never }, { $inc: { views: 1 as never } });
      return 'written';
    });
    await engine.close();
  } catch (error) {
    reads['open'] = `error: ${(error as Error).message}`;
  }
  writeSync(1, `${JSON.stringify({ flipped, deep, reads, done: true })}\n`);
  rmSync(dataDir, { recursive: true, force: true });
}
