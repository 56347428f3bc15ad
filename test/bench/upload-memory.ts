import { runOrThrow, startService } from '../helpers/run-binary.js';
import { openTempDir } from '../helpers/temp-dir.js';
import { memoryMib } from './process-cost.js';

// `npx tsx test/bench/upload-memory.ts` after `npm run build`: memory of the real server while 20 files of 10 MiB
// arrive at once, three rounds. Linux only (/proc).

const MIB = 1024 * 1024;
const UPLOADS = 20;
const FILE_BYTES = 10 * MIB;

const dir = await openTempDir();
const env = { BSVC_DATA_DIR: dir.path, BSVC_LOG_LEVEL: 'error' };
const { keys } = JSON.parse(await runOrThrow(['project', 'create', 'bench', '--plan', 'pro', '--json'], env)) as {
  keys: { secret: string };
};
const server = await startService(['serve', '--port', '0'], env);
const { url, pid } = server.ready;

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
  const before = memoryMib(pid);
  for (let round = 1; round <= 3; round++) {
    let peak = before;
    const timer = setInterval(() => (peak = Math.max(peak, memoryMib(pid))), 10);
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
  await server.stop();
  await dir.remove();
}
