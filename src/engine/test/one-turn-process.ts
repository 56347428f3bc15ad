/**
 * Another process of the test of one turn: for each byte that it is sent, until a zero, it stores a batch of documents
 * in one transaction and sends the byte back. Arguments: the data directory, the pipes to read from and to write to.
 */
import { openSync, readSync, writeSync } from 'node:fs';
import { openEngine } from '../index.js';
import { batchOf } from './one-turn.js';

const [dataDir, from, to] = process.argv.slice(2) as [string, string, string];
const engine = openEngine({ dataDir, durability: 'relaxed' });
const [requests, answers] = [openSync(from, 'r+'), openSync(to, 'r+')];
const byte = Buffer.alloc(1);

for (let batches = 0; readSync(requests, byte) === 1 && byte[0] !== 0; batches++) {
  await engine.insertTogether({ db: 'd', collection: 'items' }, batchOf(`late ${batches}`));
  writeSync(answers, byte);
}
await engine.close();
