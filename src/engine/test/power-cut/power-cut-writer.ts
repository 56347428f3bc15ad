/**
 * Changes a store and acknowledges each change in the file `acknowledged`, whose writes are noted among those of the
 * store. Arguments: the directory, how many changes, the seed.
 */
import { openSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { openEngine } from '../../index.js';
import { openRandom } from '../helpers/random.js';
import { type Acknowledged, type Entry, GROUP_SIZE } from './model.js';

const [dataDir, changes, seed] = process.argv.slice(2) as [string, string, string];
const random = openRandom(Number(seed));
const acknowledged = openSync(join(dataDir, 'acknowledged'), 'w');
const engine = openEngine({ dataDir, countBy: 'isDeleted' });
const items = engine.db('d').collection<Entry>('items');
await items.createIndexes([
  { key: { group: 1, n: -1 }, name: 'group' },
  { key: { slot: 1 }, name: 'slot', unique: true },
]);
await engine.changeLogs('d').begin('items', { first: ['group'], omit: [] });

const acknowledge = (change: Acknowledged): void => void writeSync(acknowledged, `${JSON.stringify(change)}\n`);
const makeEntry = (id: string, group: number): Entry => ({
  _id: id,
  slot: id,
  n: 0,
  group,
  isDeleted: false,
  text: 'text '.repeat(random.below(random.chance(0.02) ? 3_000 : 60)),
});

const ids: string[] = [];
for (let n = 0; n < Number(changes); n++) {
  const choice = random.below(10);
  if (ids.length === 0 || choice < 3) {
    await items.insertOne(makeEntry(`one ${n}`, 0));
    ids.push(`one ${n}`);
    acknowledge({ id: `one ${n}`, n: 0 });
  } else if (choice < 4) {
    const group = Array.from({ length: GROUP_SIZE }, (_, at) => makeEntry(`group ${n} ${at}`, n));
    await engine.insertTogether({ db: 'd', collection: 'items' }, group);
    acknowledge({ group: n });
  } else if (choice < 5) {
    const [id] = ids.splice(random.below(ids.length), 1);
    await items.deleteOne({ _id: id! });
    acknowledge({ id: id!, n: null });
  } else {
    const id = random.pick(ids);
    await items.updateOne({ _id: id }, { $set: { n, text: 'new '.repeat(random.below(100)) } });
    acknowledge({ id, n });
  }
}
await engine.close();
