import { fork } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, writeFileSync } from 'node:fs';
import { Agent } from 'node:http';
import { cpus, loadavg } from 'node:os';
import { join } from 'node:path';
import { brotliCompressSync, gzipSync } from 'node:zlib';
import { startService } from '../helpers/run-binary.js';
import { openTempDir } from '../helpers/temp-dir.js';
import { cpuSeconds } from './process-cost.js';
import { at, atSteadyRate, readReply } from './steady-rate.js';

/*
 * What the files of a front end (`bsvc serve --public`) do to the API beside them: the latency of reads by id at a
 * steady rate, alone and beside so many requests for files a second, and the processor time of one of these. The
 * files are asked for by a process of their own. Linux only.
 *
 * npm run bench public -- 1000 5         requests for files a second, seconds of each phase
 */

const [perSecond, seconds] = [Number(process.argv[2] ?? 1000), Number(process.argv[3] ?? 5)];
const READS = { perSecond: 200, seconds };
/** As a build of Vite, and how browsers ask for it. */
const PATHS = ['/', '/assets/index-Dk3xF9aQ.js', '/assets/index-B3ltQq1z.css', '/photo.jpg'];
const asked = process.argv[4];

if (asked !== undefined) await askForFiles(asked);
else await measure();

async function askForFiles(url: string): Promise<void> {
  const agent = new Agent({ keepAlive: true, maxSockets: 32 });
  const headers = { accept: 'text/html,*/*', 'accept-encoding': 'gzip, br' };
  let n = 0;
  const ask = (): Promise<string> => readReply(agent, url + PATHS[n++ % PATHS.length]!, headers);
  for (const _ of PATHS) await ask();
  process.send!('begun');
  const latencies = await atSteadyRate({ perSecond, seconds }, ask);
  agent.destroy();
  process.send!(`p50 ${at(latencies, 0.5)} p99 ${at(latencies, 0.99)}`);
  process.disconnect();
}

async function measure(): Promise<void> {
  const dir = await openTempDir();
  const site = join(dir.path, 'dist');
  writeSite(site);
  const env = { BSVC_DATA_DIR: join(dir.path, 'data'), BSVC_LOG_LEVEL: 'warn' };
  const server = await startService(['serve', '--demo', '--port', '0', '--public', site, '--spa'], env);
  const { url, demo, pid } = server.ready;
  const agent = new Agent({ keepAlive: true, maxSockets: 16 });
  const headers = { 'x-api-key': demo!.keys.secret };
  const list = JSON.parse(await readReply(agent, `${url}/api/data/posts?limit=1`, headers)) as {
    data: { items: { _id: string }[] };
  };
  const read = (): Promise<string> => readReply(agent, `${url}/api/data/posts/${list.data.items[0]!._id}`, headers);
  for (let n = 0; n < 500; n++) await read();
  const spent = async (work: () => Promise<number[]>): Promise<[latencies: number[], seconds: number]> => {
    const before = cpuSeconds(pid);
    const latencies = await work();
    const after = cpuSeconds(pid);
    return [latencies, after.user + after.system - before.user - before.system];
  };
  const [alone, aloneSeconds] = await spent(() => atSteadyRate(READS, read));
  const files = fork(import.meta.filename, [String(perSecond), String(seconds), url]);
  await once(files, 'message');
  const told = once(files, 'message') as Promise<[string]>;
  const [beside, besideSeconds] = await spent(() => atSteadyRate(READS, read));
  const [ofFiles] = await told;
  const micros = ((besideSeconds - aloneSeconds) / (perSecond * seconds)) * 1e6;
  console.log(
    [
      `${cpus().length} processors shared with the clients (load ${loadavg()[0]!.toFixed(1)});`,
      `${READS.perSecond} reads/s alone p50 ${at(alone, 0.5)} p99 ${at(alone, 0.99)},`,
      `beside ${perSecond} files/s p50 ${at(beside, 0.5)} p99 ${at(beside, 0.99)};`,
      `files ${ofFiles}, about ${micros.toFixed(0)} µs of processor time each`,
    ].join(' '),
  );
  agent.destroy();
  await server.stop();
  await dir.remove();
}

function writeSite(folder: string): void {
  mkdirSync(join(folder, 'assets'), { recursive: true });
  const script = Array.from({ length: 4_000 }, (_, n) => `export const f${n} = (a) => a * ${n * 7919};\n`).join('');
  const texts: Record<string, string> = {
    'index.html': `<!doctype html><title>app</title><script type="module" src="${PATHS[1]}"></script>`,
    'assets/index-Dk3xF9aQ.js': script,
    'assets/index-B3ltQq1z.css': 'a { color: red }\n'.repeat(200),
  };
  for (const [path, text] of Object.entries(texts)) {
    writeFileSync(join(folder, path), text);
    writeFileSync(join(folder, `${path}.br`), brotliCompressSync(text));
    writeFileSync(join(folder, `${path}.gz`), gzipSync(text));
  }
  writeFileSync(join(folder, 'photo.jpg'), Buffer.alloc(40_000, 7));
}
