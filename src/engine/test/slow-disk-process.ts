/**
 * Writes to a store and reads at the same time: `open`, then for each line what it found while its writes were under
 * way, and `written` when they were acknowledged. A line: the id of a document to insert, and of one to set to what it
 * is by then. Argument: the data directory.
 */
import { createInterface } from 'node:readline';
import { openEngine } from '../index.js';

const READS = 500;

/** What was read while a write was under way. */
export interface Found {
  readonly reads: number;
  /** The ids that are there. */
  readonly ids: string[];
  /** How many of the two writes were acknowledged in the end. */
  readonly acknowledged: number;
}

const say = (line: string): void => void process.stdout.write(`${line}\n`);

const engine = openEngine({ dataDir: process.argv[2]! });
const items = engine.db('d').collection<{ _id: string; text: string }>('items');
await items.createIndexes([{ key: { text: 1 }, name: 'text' }]);
say('open');
for await (const line of createInterface({ input: process.stdin })) {
  const [id = '', same = ''] = line.split(' ');
  let acknowledged = 0;
  const begin = (write: Promise<unknown>): Promise<unknown> => write.then(() => acknowledged++);
  const inserted = begin(items.insertOne({ _id: id, text: 'a' }));
  let repeated: Promise<unknown> | null = null;
  let reads = 0;
  while (reads < READS) {
    // Each in a turn of its own, as requests come.
    await new Promise(setImmediate);
    const found = await items.findOne({ _id: same });
    if (found !== null) repeated ??= begin(items.updateOne({ _id: same }, { $set: { text: 'a' } }));
    reads++;
  }
  const ids = (await items.find().toArray()).map(({ _id }) => _id);
  say(JSON.stringify({ reads, ids, acknowledged } satisfies Found));
  await Promise.all([inserted, repeated]);
  say('written');
}
await engine.close();
