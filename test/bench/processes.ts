import { cpus } from 'node:os';
import autocannon from 'autocannon';
import { startService } from '../helpers/run-binary.js';
import { openTempDir } from '../helpers/temp-dir.js';

/*
 * Throughput of `serve --processes` with 1, 2 and 4 processes on the embedded store, and what rate limits cost.
 *
 *   npm run bench processes -- 5        seconds for each case
 */

const SECONDS = Number(process.argv[2] ?? 5);
const CONNECTIONS = 64;
const LIMITS = { off: 'off', on: '900000000/15m' };

console.log(`${cpus().length} processors, shared with the clients; ${CONNECTIONS} connections`);
for (const processes of [1, 2, 4]) {
  for (const limits of ['off', 'on'] as const) await measure(processes, limits);
}

async function measure(processes: number, limits: 'off' | 'on'): Promise<void> {
  const dir = await openTempDir();
  const env = { BSVC_DATA_DIR: dir.path, BSVC_RATE_LIMIT: LIMITS[limits], BSVC_LOG_LEVEL: 'warn' };
  const server = await startService(['serve', '--demo', '--port', '0', '--processes', String(processes)], env);
  const { url, demo } = server.ready;
  const headers = { 'x-api-key': demo!.keys.secret, 'content-type': 'application/json' };
  const posts = `${url}/api/data/posts`;
  const { data } = (await (await fetch(posts, { headers })).json()) as { data: { items: { _id: string }[] } };
  const read = await run({ url: `${posts}/${data.items[0]!._id}`, headers });
  const list = await run({ url: `${posts}?limit=20`, headers });
  const write = await run({ url: posts, headers, method: 'POST', body: JSON.stringify({ title: 'x' }) });
  console.log(
    `processes ${processes}, limits ${limits.padEnd(3)}: ${read} reads/s, ${list} lists/s, ${write} writes/s`,
  );
  await server.stop();
  await dir.remove();
}

async function run(options: autocannon.Options): Promise<number> {
  const result = await autocannon({ ...options, connections: CONNECTIONS, duration: SECONDS });
  if (result.errors + result.non2xx > 0) throw new Error(`${result.errors} errors, ${result.non2xx} other replies`);
  return Math.round(result.requests.average);
}
