import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { openTempDir } from '../helpers/temp-dir.js';

// `npx tsx test/bench/upload-memory.ts` after `npm run build`: memory of the real server while 20 files of 10 MiB arrive at once, three rounds. Linux only (/proc).

const MIB = 1024 * 1024;
const UPLOADS = 20;
const FILE_BYTES = 10 * MIB;
const BIN = join(import.meta.dirname, '..', '..', 'bin', 'bsvc.js');

const dir = await openTempDir();
const env = { ...process.env, BSVC_DATA_DIR: dir.path, BSVC_LOG_LEVEL: 'error', BSVC_RATE_LIMIT: 'off' };

async function run(...words: string[]): Promise<string> {
  const child = spawn(process.execPath, [BIN, ...words], { env, stdio: ['ignore', 'pipe', 'inherit'] });
  let out = '';
  child.stdout.on('data', (chunk: Buffer) => (out += chunk.toString()));
  await once(child, 'close');
  return out;
}

const { keys } = JSON.parse(await run('project', 'create', 'bench', '--plan', 'pro', '--json')) as {
  keys: { secret: string };
};
const server = spawn(process.execPath, [BIN, 'serve', '--port', '0', '--json'], {
  env,
  stdio: ['ignore', 'pipe', 'inherit'],
});
const [ready] = (await once(createInterface({ input: server.stdout }), 'line')) as [string];
const { url, pid } = JSON.parse(ready) as { url: string; pid: number };

const residentMib = (): number => Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))![1]) / 1024;

const bytes = new Uint8Array(FILE_BYTES);
async function upload(): Promise<number> {
  const form = new FormData();
  form.set('file', new File([bytes], 'a.bin', { type: 'image/png' }));
  const reply = await fetch(`${url}/api/storage/upload`, {
    method: 'POST',
    headers: { 'x-api-key': keys.secret },
    body: form,
  });
  await reply.arrayBuffer();
  return reply.status;
}

try {
  await upload();
  const before = residentMib();
  for (let round = 1; round <= 3; round++) {
    let peak = before;
    const timer = setInterval(() => (peak = Math.max(peak, residentMib())), 10);
    const started = performance.now();
    const statuses = await Promise.all(Array.from({ length: UPLOADS }, upload));
    clearInterval(timer);
    const seconds = (performance.now() - started) / 1000;
    const stored = statuses.filter((status) => status === 201).length;
    console.log(
      `round ${round}: ${stored}/${UPLOADS} stored, ${((UPLOADS * FILE_BYTES) / MIB / seconds).toFixed(0)} MiB/s, resident ${before.toFixed(0)} MiB before, ${peak.toFixed(0)} MiB at most`,
    );
  }
} finally {
  server.kill('SIGTERM');
  await once(server, 'exit');
  await dir.remove();
}
