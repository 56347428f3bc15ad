import { spawnSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { Agent } from 'node:http';
import { cpus, loadavg } from 'node:os';
import { join } from 'node:path';
import { startService } from '../helpers/run-binary.js';
import { openTempDir } from '../helpers/temp-dir.js';
import { at, atSteadyRate, readReply } from './steady-rate.js';

/*
 * What a slow disk does to reads: their latency at a steady rate beside inserts at another one, while each sync takes
 * so many milliseconds more. Rounds, of which the middle one counts. Linux with a C compiler only.
 *
 * npm run bench disk -- 3 3         seconds of each phase, rounds
 */

const [seconds, rounds] = [Number(process.argv[2] ?? 3), Number(process.argv[3] ?? 3)];
const READS = { perSecond: 200, seconds };
const WRITES = { perSecond: 40, seconds };
const SYNC_MS = [0, 20, 200];

const dir = await openTempDir();
const [library, slow] = [join(dir.path, 'slow-syncs.so'), join(dir.path, 'sync-ms')];
const source = join(import.meta.dirname, 'slow-syncs.c');
const compiled = spawnSync('cc', ['-shared', '-fPIC', '-O1', '-o', library, source, '-ldl'], { encoding: 'utf8' });
if (compiled.status !== 0) throw new Error(compiled.stderr);
writeFileSync(slow, '0');
const server = await startService(['serve', '--demo', '--port', '0'], {
  BSVC_DATA_DIR: join(dir.path, 'data'),
  BSVC_LOG_LEVEL: 'warn',
  ...{ LD_PRELOAD: library, SLOW_SYNCS: slow },
});
const { url, demo } = server.ready;
const agent = new Agent({ keepAlive: true });
const headers = { 'x-api-key': demo!.keys.secret, 'content-type': 'application/json' };
const posts = `${url}/api/data/posts`;
const { data } = JSON.parse(await readReply(agent, `${posts}?limit=1`, headers)) as { data: { items: Document[] } };
const read = (): Promise<string> => readReply(agent, `${posts}/${data.items[0]!._id}`, headers);
const operations = [{ op: 'insert', collection: 'posts', body: { title: 'Beside reads' } }];
const write = (): Promise<string> => readReply(agent, `${url}/api/batch`, headers, { operations });
interface Document {
  _id: string;
}

for (let n = 0; n < 500; n++) await read();
const found = SYNC_MS.map(() => ({ reads: [] as number[][], writes: [] as number[][] }));
for (let round = 0; round < rounds; round++) {
  for (const [n, ms] of SYNC_MS.entries()) {
    writeFileSync(slow, String(ms));
    const [reads, writes] = await Promise.all([atSteadyRate(READS, read), atSteadyRate(WRITES, write)]);
    found[n]!.reads.push(reads);
    found[n]!.writes.push(writes);
  }
}
/** The round whose median is in the middle. */
const middle = (latencies: number[][]): number[] =>
  latencies.sort((a, b) => median(a) - median(b))[Math.floor((rounds - 1) / 2)]!;
const median = (sorted: number[]): number => sorted[Math.floor((sorted.length - 1) / 2)]!;
const quiet = median(middle(found[0]!.reads));
console.log(
  `${cpus().length} processors shared with the clients (load ${loadavg()[0]!.toFixed(1)}), ${READS.perSecond} reads/s:`,
);
for (const [n, { reads, writes }] of found.entries()) {
  const [ofReads, ofWrites] = [middle(reads), middle(writes)];
  console.log(
    `a sync takes ${SYNC_MS[n]} ms more: reads p50 ${at(ofReads, 0.5)} (${(median(ofReads) / quiet).toFixed(2)}x) ` +
      `p99 ${at(ofReads, 0.99)}, ${WRITES.perSecond} inserts/s p50 ${at(ofWrites, 0.5)}`,
  );
}
agent.destroy();
writeFileSync(slow, '0');
await server.stop();
await dir.remove();
