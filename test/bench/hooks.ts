import { mkdir, writeFile } from 'node:fs/promises';
import { Agent, request } from 'node:http';
import { loadavg } from 'node:os';
import { join } from 'node:path';
import { openApp } from '../../src/app.js';
import { loadConfig } from '../../src/config/config.js';
import { addCollection } from '../../src/features/collections/add-collection.js';
import { addHook } from '../../src/features/hooks/change-hooks.js';
import { openLogger } from '../../src/platform/observe/logger.js';
import { buildProject } from '../helpers/build-project.js';
import { startService } from '../helpers/run-binary.js';
import { openTempDir } from '../helpers/temp-dir.js';
import { threadMicros } from './process-cost.js';

/*
 * What a hook of a file adds to an insert (hooks.md 2): processor time of the server, without the child's, and waiting,
 * each the least of several interleaved blocks. Linux only.
 *
 * npm run bench hooks -- 5 300      blocks, requests of a block
 */

const BLOCKS = Number(process.argv[2] ?? 5);
const REQUESTS = Number(process.argv[3] ?? 300);
const GOALS = { processor: 250, p50: 1 };

const dir = await openTempDir();
const env = {
  ...{ BSVC_DATA_DIR: dir.path, BSVC_DURABILITY: 'relaxed', BSVC_LOG_LEVEL: 'warn', BSVC_RATE_LIMIT: 'off' },
  BSVC_HOOKS_DIR: join(dir.path, 'hooks'),
};
const secret = await fill();
const server = await startService(['serve', '--port', '0', '--no-worker'], env);
const agent = new Agent({ keepAlive: true, maxSockets: 1 });
const { url, pid } = server.ready;

const least: Record<string, { processor: number; p50: number }> = {};
for (let block = 0; block < BLOCKS; block++) {
  for (const name of ['plain', 'hooked']) {
    for (let n = 0; n < 30; n++) await insert(name);
    const before = threadMicros(pid);
    const times: number[] = [];
    for (let n = 0; n < REQUESTS; n++) {
      const begun = performance.now();
      await insert(name);
      times.push(performance.now() - begun);
    }
    const processor = (threadMicros(pid) - before) / REQUESTS;
    const p50 = times.sort((a, b) => a - b)[Math.floor(REQUESTS / 2)]!;
    const known = least[name] ?? { processor: Infinity, p50: Infinity };
    least[name] = { processor: Math.min(processor, known.processor), p50: Math.min(p50, known.p50) };
  }
}

const { plain, hooked } = least as Record<'plain' | 'hooked', { processor: number; p50: number }>;
console.log(`load ${loadavg()[0]!.toFixed(1)}; an insert with a hook of a file, less one without`);
say('processor', hooked.processor - plain.processor, GOALS.processor, 'µs');
say('p50', hooked.p50 - plain.p50, GOALS.p50, 'ms');
agent.destroy();
await server.stop();
await dir.remove();

function say(what: string, is: number, goal: number, unit: string): void {
  console.log(
    `${what.padEnd(12)}${is.toFixed(2).padStart(8)} ${unit}   goal ${goal} ${unit} ${is <= goal ? 'met' : 'missed'}`,
  );
}

async function fill(): Promise<string> {
  const { config } = loadConfig([{ source: 'bench', values: env }]);
  const app = await openApp(config, openLogger({ level: 'warn', format: 'json' }));
  const { project, secret: key } = await buildProject(app, 'shop');
  const fields = [
    { name: 'quantity', type: 'Number', required: true },
    { name: 'price', type: 'Number', hook: true },
  ] as const;
  for (const name of ['plain', 'hooked']) await addCollection(app, project, { name, fields: [...fields] });
  await mkdir(join(env.BSVC_HOOKS_DIR, 'shop'), { recursive: true });
  const code = `({ document }) => ({ allow: true, set: { price: document.quantity * 7 } })`;
  await writeFile(join(env.BSVC_HOOKS_DIR, 'shop', 'own.mjs'), `export default { 'hooked.create': ${code} };\n`);
  await addHook(app, project, { event: 'hooked.create', run: 'own.mjs' });
  await app.close();
  return key;
}

function insert(name: string): Promise<void> {
  const body = JSON.stringify({ quantity: 2 });
  const headers = { 'x-api-key': secret, 'content-type': 'application/json', 'content-length': body.length };
  return new Promise((resolve, reject) => {
    const sent = request(`${url}/api/data/${name}`, { method: 'POST', agent, headers }, (response) => {
      response.resume();
      response.on('end', () => (response.statusCode === 201 ? resolve() : reject(new Error(`${response.statusCode}`))));
    });
    sent.on('error', reject);
    sent.end(body);
  });
}
