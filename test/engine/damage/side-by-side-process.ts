/**
 * A healthy process of several on one store over 8 MB: reads and writes for some rounds and says, as JSON, how many it
 * made and what failed. Arguments: the data directory, a seed, how many rounds. It opens the store again and again:
 * pages are checked before they are used only until all of them have been looked at.
 */
import { openEngine } from '../../../src/engine/index.js';
import { openRandom } from '../../helpers/random.js';
import { DOCUMENTS, GROUPS, type Stored } from './damaged-store.js';

const [dataDir, seed, rounds] = process.argv.slice(2) as [string, string, string];
const ROUNDS_EACH = 25;
const random = openRandom(Number(seed));
const errors: string[] = [];
const wrong: string[] = [];
let made = 0;

const text = (): string => 'text '.repeat(random.pick([20, 150, 400, 900]));

while (made < Number(rounds)) {
  const engine = openEngine({ dataDir, durability: 'relaxed', countBy: 'isDeleted' });
  const items = engine.db('d').collection<Stored>('a');
  for (let n = 0; n < ROUNDS_EACH && made < Number(rounds); n++, made++) {
    const group = random.below(GROUPS);
    const ids = Array.from({ length: 5 }, () => random.below(DOCUMENTS));
    try {
      const changes = ids.map(async (id) => {
        if (random.chance(0.3)) await items.deleteOne({ _id: id });
        else if (random.chance(0.3)) {
          const doc = { group, slot: `a ${id}`, views: 0, isDeleted: false, text: text() };
          await items.replaceOne({ _id: id }, doc, { upsert: true });
        } else await items.updateOne({ _id: id }, { $inc: { views: 1 }, $set: { group, text: text() } });
      });
      const found = await Promise.all([
        items.find({ _id: { $in: ids } }).toArray(),
        items.find({ group }).sort({ _id: -1 }).limit(20).toArray(),
        items.find({ group }).toArray(),
      ]);
      for (const doc of found[1]) if (doc.group !== group) wrong.push(`${doc._id} in the list of ${group}`);
      await items.countDocuments({ group });
      await Promise.all(changes);
    } catch (error) {
      errors.push((error as Error).message);
    }
  }
  await engine.close();
}
console.log(JSON.stringify({ made, errors: errors.slice(0, 5), failed: errors.length, wrong: wrong.slice(0, 5) }));
