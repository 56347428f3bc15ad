/**
 * The victim of the conversion test: opens a store of format 1, which is converted while it changes documents of it,
 * and reports each acknowledged write, until it is killed. Arguments: data directory, number of this round.
 */
import { writeSync } from 'node:fs';
import { openEngine } from '../../src/engine/index.js';

const [dataDir, round] = process.argv.slice(2);
const engine = openEngine({ dataDir: dataDir!, countBy: 'trashed' });
const items = engine.db('old').collection<{ _id: number; n: number; trashed: boolean; tag: string }>('items');

for (let k = 0; ; k++) {
  const at = (k * 7919 + Number(round)) % 4_000;
  const _id = k % 3 === 2 ? 100_000 + at : at;
  // What was begun may be done although it is never reported.
  writeSync(1, `begun ${_id}\n`);
  if (k % 3 === 0) await items.deleteOne({ _id });
  else if (k % 3 === 1) await items.updateOne({ _id }, { $set: { trashed: k % 2 === 0, tag: `round ${round!}` } });
  else await items.updateOne({ _id }, { $set: { n: 1_000_000 + _id, trashed: false, tag: 'new' } }, { upsert: true });
  writeSync(1, `${['deleted', 'updated', 'upserted'][k % 3]!} ${_id}\n`);
}
