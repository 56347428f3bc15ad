import { readdirSync, readFileSync } from 'node:fs';
import { Agent } from 'node:http';
import { cpus, loadavg } from 'node:os';
import { openEngine } from '../../src/engine/index.js';
import { startService } from '../helpers/run-binary.js';
import { openTempDir } from '../helpers/temp-dir.js';
import { at, atSteadyRate, readReply, timed } from './steady-rate.js';

/*
 * What an aggregation over many documents does to small reads beside it, inline and in a reader thread: the time of the
 * aggregation, and the latency of reads by id at a steady rate, idle and beside it, with the greatest delay of the
 * server's event loop. Linux only.
 *
 * npm run bench heavy -- 200000 5        documents, seconds of each phase
 */

const DOCUMENTS = Number(process.argv[2] ?? 200_000);
const SECONDS = Number(process.argv[3] ?? 5);
const READS = { perSecond: 200, seconds: SECONDS };
const TOKEN = 'a-token-for-a-benchmark-0123456789';
const PIPELINE = [
  { $group: { _id: '$group', views: { $sum: '$views' }, most: { $max: '$views' } } },
  { $sort: { _id: 1 } },
];

console.log(`${DOCUMENTS} documents, ${READS.perSecond} reads/s, ${cpus().length} processors shared with the clients`);
for (const threads of [0, 1]) await measure(threads);

async function measure(readerThreads: number): Promise<void> {
  const dir = await openTempDir();
  const env = {
    BSVC_DATA_DIR: dir.path,
    BSVC_DURABILITY: 'relaxed',
    BSVC_LOG_LEVEL: 'warn',
    BSVC_ADMIN_TOKEN: TOKEN,
  };
  const server = await startService(['serve', '--demo', '--port', '0', '--no-worker'], env, {
    constants: { readerThreads },
  });
  const { url, demo } = server.ready;
  const headers = { 'x-api-key': demo!.keys.secret, 'content-type': 'application/json' };
  await placeDocuments(dir.path);
  const agent = new Agent({ keepAlive: true, maxSockets: 16 });
  const call = (path: string, body?: object): Promise<string> => readReply(agent, url + path, headers, body);
  const list = JSON.parse(await call('/api/data/posts?limit=1')) as { data: { items: { _id: string }[] } };
  const read = (): Promise<string> => call(`/api/data/posts/${list.data.items[0]!._id}`);
  const aggregate = (): Promise<string> => call('/api/data/posts/aggregate', { pipeline: PIPELINE });

  for (let n = 0; n < 200; n++) await read();
  await aggregate();
  const alone: number[] = [];
  const spentBefore = readProcessorTime(server.ready.pid);
  for (const end = performance.now() + SECONDS * 1000; performance.now() < end;) alone.push(await timed(aggregate));
  const spent = readProcessorTime(server.ready.pid);
  const perAggregation = (part: 'main' | 'all'): string =>
    `${((spent[part] - spentBefore[part]) / alone.length).toFixed(0)} ms`;
  const idle = await atSteadyRate(READS, read);
  await readLoopDelay(url);
  const beside: number[] = [];
  let over = false;
  const heavy = (async () => {
    while (!over) beside.push(await timed(aggregate));
  })();
  const busy = await atSteadyRate(READS, read);
  over = true;
  await heavy;
  const delay = await readLoopDelay(url);
  console.log(
    [
      `threads ${readerThreads} (load ${loadavg()[0]!.toFixed(1)}):`,
      `aggregation alone ${best(alone)}, beside reads ${best(beside)} (best of ${beside.length});`,
      `processor time ${perAggregation('all')} each, of it ${perAggregation('main')} in the main thread;`,
      `reads idle p50 ${at(idle, 0.5)} p99 ${at(idle, 0.99)}, beside p50 ${at(busy, 0.5)} p99 ${at(busy, 0.99)};`,
      `event loop delay beside at most ${delay}`,
    ].join(' '),
  );
  agent.destroy();
  await server.stop();
  await dir.remove();
}

/** Straight into the demo's collection, since filling is not what is measured. */
async function placeDocuments(dataDir: string): Promise<void> {
  const engine = openEngine({ dataDir, durability: 'relaxed' });
  const [posts] = (await engine.db('bsvc').collections()).filter(({ collectionName }) =>
    collectionName.startsWith('documents_'),
  );
  for (let first = 0; first < DOCUMENTS; first += 1000) {
    const createdAt = new Date(1_700_000_000_000 + first);
    await posts!.insertMany(
      Array.from({ length: 1000 }, (_, n) => ({
        title: `post ${first + n}`,
        group: (first + n) % 100,
        views: first + n,
        isDeleted: false,
        deletedAt: null,
        createdAt,
        updatedAt: createdAt,
      })),
    );
  }
  await engine.close();
}

/** The greatest since it was last asked, as the server's metrics tell. */
async function readLoopDelay(url: string): Promise<string> {
  const metrics = await (await fetch(`${url}/metrics`, { headers: { authorization: `Bearer ${TOKEN}` } })).text();
  const [, seconds] = /^nodejs_eventloop_lag_max_seconds (\S+)$/m.exec(metrics) ?? [];
  return seconds === undefined ? 'unknown' : `${(Number(seconds) * 1000).toFixed(0)} ms`;
}

/** Milliseconds, of the main thread and of all: on a busy machine they say more than the clock does. */
function readProcessorTime(pid: number): { main: number; all: number } {
  const ofThread = (id: string): number =>
    Number(readFileSync(`/proc/${pid}/task/${id}/schedstat`, 'utf8').split(' ')[0]) / 1e6;
  const all = readdirSync(`/proc/${pid}/task`).reduce((sum, id) => sum + ofThread(id), 0);
  return { main: ofThread(String(pid)), all };
}

function best(times: number[]): string {
  return `${Math.min(...times).toFixed(0)} ms`;
}
