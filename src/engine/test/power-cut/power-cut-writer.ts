/**
 * Changes a store by several hands at once, and says of each change in the file `acknowledged`, whose writes are noted
 * among those of the store, that it begins and that it was acknowledged. Arguments: the directory, how many changes
 * each hand makes, a seed that no other process has.
 */
import { openSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { openEngine } from '../../index.js';
import { openRandom } from '../helpers/random.js';
import { type Change, type Entry, GROUP_SIZE, type Line } from './model.js';

const HANDS = 3;

const [dataDir, changes, seed] = process.argv.slice(2) as [string, string, string];
const acknowledged = openSync(join(dataDir, 'acknowledged'), 'a');
const engine = openEngine({ dataDir, countBy: 'isDeleted' });
const items = engine.db('d').collection<Entry>('items');
await items.createIndexes([
  { key: { group: 1, n: -1 }, name: 'group' },
  { key: { slot: 1 }, name: 'slot', unique: true },
]);
await engine.changeLogs('d').begin('items', { first: ['group'], omit: [] });
await Promise.all(Array.from({ length: HANDS }, (_, at) => work(`${seed} ${at}`, Number(seed) * HANDS + at)));
await engine.close();

async function work(hand: string, handSeed: number): Promise<void> {
  const random = openRandom(handSeed);
  const say = (change: Change, isDone: boolean): void => {
    const line: Line = { hand, change, isDone };
    writeSync(acknowledged, `${JSON.stringify(line)}\n`);
  };
  const make = async (change: Change, run: () => Promise<unknown>): Promise<void> => {
    say(change, false);
    await run();
    say(change, true);
  };
  const newEntry = (id: string, group: string): Entry => ({
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
      const entry = newEntry(`${hand} one ${n}`, '');
      await make({ id: entry._id, n: 0 }, () => items.insertOne(entry));
      ids.push(entry._id);
    } else if (choice < 4) {
      const group = `${hand} group ${n}`;
      const entries = Array.from({ length: GROUP_SIZE }, (_, at) => newEntry(`${group} ${at}`, group));
      await make({ group }, () => engine.insertTogether({ db: 'd', collection: 'items' }, entries));
    } else if (choice < 5) {
      const [id = ''] = ids.splice(random.below(ids.length), 1);
      await make({ id, n: null }, () => items.deleteOne({ _id: id }));
    } else {
      const id = random.pick(ids);
      const text = 'new '.repeat(random.below(100));
      await make({ id, n }, () => items.updateOne({ _id: id }, { $set: { n, text } }));
    }
  }
}
