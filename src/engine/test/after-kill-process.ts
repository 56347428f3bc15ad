/**
 * A process that has a store open until it is told to write, close, or is killed: `open`, then for each line it reads
 * one with what came of it. Argument: the data directory.
 */
import { createInterface } from 'node:readline';
import { openEngine } from '../index.js';

const engine = openEngine({ dataDir: process.argv[2]! });
const items = engine.db('d').collection<{ _id: string; text: string }>('items');
process.stdout.write('open\n');
for await (const line of createInterface({ input: process.stdin })) {
  if (line === 'close') break;
  try {
    await items.insertOne({ _id: line, text: 'x'.repeat(200) });
    process.stdout.write('written\n');
  } catch (error) {
    process.stdout.write(`${(error as { code?: string }).code ?? String(error)}\n`);
  }
}
await engine.close();
