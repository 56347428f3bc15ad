import { mkdir, writeFile } from 'node:fs/promises';
import { Agent, createServer, request } from 'node:http';
import { loadavg } from 'node:os';
import { join } from 'node:path';
import { openApp, type App } from '../../src/app.js';
import { loadConfig } from '../../src/config/config.js';
import { addCollection } from '../../src/features/collections/add-collection.js';
import { operatorCaller } from '../../src/features/access/operator-access.js';
import { askBefore } from '../../src/features/hooks/before-calls.js';
import { addHook } from '../../src/features/hooks/change-hooks.js';
import type { Project } from '../../src/features/projects/project.js';
import { requireProject } from '../../src/features/projects/project-store.js';
import { openLogger } from '../../src/platform/observe/logger.js';
import { buildProject } from '../helpers/build-project.js';
import { startService } from '../helpers/run-binary.js';
import { openTempDir } from '../helpers/temp-dir.js';
import { threadMicros } from './process-cost.js';

/*
 * What a call of a hook of a file costs (hooks.md 2): processor time of the service, without the child's, and waiting;
 * then what it adds to an insert over HTTP, which is decided about twice. Each is the least of several blocks. Last the
 * 99th of a hundred inserts of one project while another's receiver is dead, beside while it answers, in turns. Linux
 * only.
 *
 * npm run bench hooks -- 5 300      blocks, requests of a block
 */

const BLOCKS = Number(process.argv[2] ?? 5);
const REQUESTS = Number(process.argv[3] ?? 300);
const GOALS = { processor: 250, p50: 1, beside: 1.05 };
/** Requests of the project whose receiver may be dead. */
const PACE_MS = 25;
const BESIDE_BLOCKS = BLOCKS * 4;
/** Calls of a block: each is short. */
const CALLS = 1_000;

const dir = await openTempDir();
const env = {
  ...{ BSVC_DATA_DIR: dir.path, BSVC_DURABILITY: 'relaxed', BSVC_LOG_LEVEL: 'warn', BSVC_RATE_LIMIT: 'off' },
  ...{ BSVC_HOOKS_DIR: join(dir.path, 'hooks'), BSVC_WEBHOOK_ALLOW_PRIVATE: 'true' },
};
let isDead = false;
const receiver = createServer((_, response) => {
  if (!isDead) response.end('{"allow":true}');
});
await new Promise<void>((resolve) => receiver.listen(0, '127.0.0.1', resolve));
const { secret, otherSecret, call } = await fill();
const server = await startService(['serve', '--port', '0', '--no-worker'], env);
const agent = new Agent({ keepAlive: true, maxSockets: 1 });
const { url, pid } = server.ready;

const least: Record<string, Cost> = {};
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

const { plain, hooked } = least as Record<'plain' | 'hooked', Cost>;
console.log(`load ${loadavg()[0]!.toFixed(1)}; a call, with its entry in the log`);
say('processor', call.processor, 'µs', GOALS.processor);
say('p50', call.p50, 'ms', GOALS.p50);
console.log('an insert with the hook, less one without');
say('processor', hooked.processor - plain.processor, 'µs');
say('p50', hooked.p50 - plain.p50, 'ms');
console.log('the 99th insert beside a project whose receiver is dead, and while it answers');
say('times', await measureBeside(), 'x', GOALS.beside);
agent.destroy();
await server.stop();
receiver.closeAllConnections();
receiver.close();
await dir.remove();

function say(what: string, is: number, unit: string, goal?: number): void {
  const met = goal === undefined ? '' : `   goal ${goal} ${unit} ${is <= goal ? 'met' : 'missed'}`;
  console.log(`${what.padEnd(12)}${is.toFixed(2).padStart(8)} ${unit}${met}`);
}

/** The 99th of the inserts while the other project's receiver is dead, as a multiple of it while that answers. */
async function measureBeside(): Promise<number> {
  const others = new Agent({ keepAlive: true });
  const tails: Record<'dead' | 'alive', number[]> = { dead: [], alive: [] };
  for (let block = 0; block < BESIDE_BLOCKS; block++) {
    isDead = block % 2 === 0;
    const waiting = new Set<Promise<unknown>>();
    const pace = setInterval(() => {
      const asked: Promise<unknown> = insert('orders', otherSecret, others)
        .catch(() => undefined)
        .finally(() => waiting.delete(asked));
      waiting.add(asked);
    }, PACE_MS);
    const times: number[] = [];
    for (let n = 0; n < REQUESTS; n++) {
      const begun = performance.now();
      await insert('plain');
      times.push(performance.now() - begun);
    }
    clearInterval(pace);
    await Promise.all(waiting);
    tails[isDead ? 'dead' : 'alive'].push(times.sort((a, b) => a - b)[Math.floor(REQUESTS * 0.99)]!);
  }
  others.destroy();
  const middle = (all: number[]): number => all.sort((a, b) => a - b)[all.length >> 1]!;
  return middle(tails.dead) / middle(tails.alive);
}

interface Cost {
  processor: number;
  p50: number;
}

async function measureCall(app: App, project: Project): Promise<Cost> {
  const caller = operatorCaller(project);
  const asked = [{ document: { quantity: 2 } }];
  const ask = () => askBefore(app, caller, { event: 'hooked.create', asked, isOne: true, take: (set) => set });
  const cost: Cost = { processor: Infinity, p50: Infinity };
  for (let block = 0; block < BLOCKS; block++) {
    const before = process.cpuUsage();
    const times: number[] = [];
    for (let n = 0; n < CALLS; n++) {
      const begun = performance.now();
      await ask();
      times.push(performance.now() - begun);
    }
    const { user, system } = process.cpuUsage(before);
    cost.processor = Math.min(cost.processor, (user + system) / CALLS);
    cost.p50 = Math.min(cost.p50, times.sort((x, y) => x - y)[CALLS / 2]!);
  }
  return cost;
}

async function fill(): Promise<{ secret: string; otherSecret: string; call: Cost }> {
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
  const measured = await measureCall(app, await requireProject(app, 'shop'));
  const other = await buildProject(app, 'other');
  await addCollection(app, other.project, { name: 'orders', fields: [...fields] });
  const { port } = receiver.address() as { port: number };
  await addHook(app, other.project, { event: 'orders.create', url: `http://127.0.0.1:${port}/`, timeoutMs: 500 });
  await app.close();
  return { secret: key, otherSecret: other.secret, call: measured };
}

function insert(name: string, key = secret, by = agent): Promise<void> {
  const body = JSON.stringify({ quantity: 2 });
  const headers = { 'x-api-key': key, 'content-type': 'application/json', 'content-length': body.length };
  return new Promise((resolve, reject) => {
    const sent = request(`${url}/api/data/${name}`, { method: 'POST', agent: by, headers }, (response) => {
      response.resume();
      response.on('end', () => (response.statusCode === 201 ? resolve() : reject(new Error(`${response.statusCode}`))));
    });
    sent.on('error', reject);
    sent.end(body);
  });
}
