import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { cpus, tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import autocannon from 'autocannon';

/*
 * Throughput of `serve --processes` with 1, 2 and 4 processes on the embedded store, and what rate limits cost.
 *
 *   npm run bench:processes -- 5        seconds for each case
 */

const SECONDS = Number(process.argv[2] ?? 5);
const CONNECTIONS = 64;
const BIN = join(import.meta.dirname, '../../bin/bsvc.js');
const LIMITS = { off: 'off', on: '900000000/15m' };

console.log(`${cpus().length} processors, shared with the clients; ${CONNECTIONS} connections`);
for (const processes of [1, 2, 4]) {
  for (const limits of ['off', 'on'] as const) await measure(processes, limits);
}

async function measure(processes: number, limits: 'off' | 'on'): Promise<void> {
  const dataDir = await mkdtemp(join(tmpdir(), 'bsvc-bench-'));
  const env = {
    PATH: process.env.PATH,
    BSVC_DATA_DIR: dataDir,
    BSVC_RATE_LIMIT: LIMITS[limits],
    BSVC_LOG_LEVEL: 'warn',
  };
  const words = ['serve', '--demo', '--port', '0', '--processes', String(processes), '--json'];
  const server = spawn(process.execPath, [BIN, ...words], { env, stdio: ['ignore', 'pipe', 'inherit'] });
  const [line] = (await once(createInterface({ input: server.stdout }), 'line')) as [string];
  const { url, demo } = JSON.parse(line) as { url: string; demo: { keys: { secret: string } } };
  const headers = { 'x-api-key': demo.keys.secret, 'content-type': 'application/json' };
  const posts = `${url}/api/data/posts`;
  const { data } = (await (await fetch(posts, { headers })).json()) as { data: { items: { _id: string }[] } };
  const read = await run({ url: `${posts}/${data.items[0]!._id}`, headers });
  const list = await run({ url: `${posts}?limit=20`, headers });
  const write = await run({ url: posts, headers, method: 'POST', body: JSON.stringify({ title: 'x' }) });
  console.log(`processes ${processes}, limits ${limits.padEnd(3)}: ${read} reads/s, ${list} lists/s, ${write} writes/s`);
  await end(server);
  await rm(dataDir, { recursive: true, force: true });
}

async function run(options: autocannon.Options): Promise<number> {
  const result = await autocannon({ ...options, connections: CONNECTIONS, duration: SECONDS });
  if (result.errors + result.non2xx > 0) throw new Error(`${result.errors} errors, ${result.non2xx} other replies`);
  return Math.round(result.requests.average);
}

async function end(server: ChildProcess): Promise<void> {
  server.kill('SIGTERM');
  await once(server, 'exit');
}
