/**
 * A process that fills a store until it is killed or has stored enough: imports, removals, changes of large values,
 * indexes that are built and dropped, backups. Prints a line after each step. Arguments: the data directory, how many
 * documents, a seed.
 */
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { openEngine } from '../../index.js';
import { openRandom } from './random.js';

const [dataDir = '', wanted, seed] = process.argv.slice(2);
const BATCH = 1_000;
const random = openRandom(Number(seed));
const engine = openEngine({ dataDir, durability: 'relaxed', countBy: 'isDeleted' });
const items = engine.db('d').collection<{ _id: number; slot: string; group: number; text: string }>('items');
await items.createIndex({ slot: 1 }, { unique: true });
await items.createIndex({ group: 1, _id: -1 });
const [last] = await items.find().sort({ _id: -1 }).limit(1).toArray();
let next = (last?._id ?? -1) + 1;

const steps: (() => Promise<unknown>)[] = [
  async () => {
    const many = Array.from({ length: 10 * BATCH }, () => {
      const _id = next++;
      const length = random.below(500) === 0 ? 20_000 : 50 + random.below(200);
      return { _id, slot: `${(_id * 7_919) % 1_000_003} ${_id}`, group: random.below(1_000), text: 'x'.repeat(length) };
    });
    for (let at = 0; at < many.length; at += BATCH) await items.insertMany(many.slice(at, at + BATCH));
  },
  async () => {
    const from = random.below(next);
    await items.deleteMany({ _id: { $gte: from, $lt: from + random.below(2 * BATCH) } });
  },
  async () => {
    const group = random.below(1_000);
    await items.updateMany({ group }, { $set: { text: 'y'.repeat(random.below(9_000)) } });
  },
  async () => {
    await items.createIndex({ text: 1 });
    await items.dropIndex('text_1');
  },
  async () => {
    const path = join(dataDir, 'copy');
    await engine.backup(path);
    rmSync(path, { force: true });
  },
];

while (next < Number(wanted)) {
  // Mostly imports.
  await steps[random.chance(0.5) ? 0 : random.below(steps.length)]!();
  process.stdout.write(`${next}\n`);
}
await engine.close();
