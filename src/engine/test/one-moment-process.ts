/**
 * A process of the test of one moment. `write`: changes the store, reporting each acknowledged change, until it is
 * killed. `read`: answers each line of its input by what it sees of the store at this moment. Arguments: which of both,
 * the data directory, for a writer its number.
 */
import { createInterface } from 'node:readline';
import { writeSync } from 'node:fs';
import { openEngine } from '../index.js';
import { type Item, look, STATES } from './one-moment.js';

const [what, dataDir, number] = process.argv.slice(2) as [string, string, string];
const engine = openEngine({ dataDir, countBy: 'isDeleted' });
const items = engine.db('d').collection<Item>('items');

if (what === 'read') {
  for await (const _line of createInterface({ input: process.stdin })) {
    writeSync(1, `${JSON.stringify(await look(engine))}\n`);
  }
  await engine.close();
} else {
  for (let n = 0; ; n++) {
    const item = { n, state: STATES[n % STATES.length]!, isDeleted: n % 5 === 0 };
    // No two commits leave the same numbers.
    const writes: Promise<unknown>[] = [items.insertOne({ _id: `${number} ${n}`, ...item })];
    if (n % 3 === 2) writes.push(items.updateOne({ _id: `${number} ${n - 1}` }, { $set: { state: 'changed' } }));
    await Promise.all(writes);
    writeSync(1, '.\n');
  }
}
