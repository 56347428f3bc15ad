import { Agent, request } from 'node:http';
import { loadavg } from 'node:os';
import { openApp } from '../../src/app.js';
import { loadConfig } from '../../src/config/config.js';
import { parseFieldSpec } from '../../cli/ask/field-spec.js';
import { addCollection } from '../../src/features/collections/add-collection.js';
import { openLogger } from '../../src/platform/observe/logger.js';
import { buildProject } from '../helpers/build-project.js';
import { startService } from '../helpers/run-binary.js';
import { openTempDir } from '../helpers/temp-dir.js';
import { threadMicros } from './process-cost.js';

/*
 * What writes of writes.md cost: processor time of whole requests with the secret key, of all threads of the server,
 * beside the plain write that each is compared with; the least of several interleaved blocks. Then how long others wait
 * beside batches of 100: the 99th of a hundred reads in the quietest block. Linux only.
 *
 * npm run bench writes -- 5 400      blocks, requests of a block
 */

const BLOCKS = Number(process.argv[2] ?? 5);
const REQUESTS = Number(process.argv[3] ?? 400);
const BATCH = 10;

const dir = await openTempDir();
const env = { BSVC_DATA_DIR: dir.path, BSVC_DURABILITY: 'relaxed', BSVC_LOG_LEVEL: 'warn', BSVC_RATE_LIMIT: 'off' };
const secret = await fill();
const server = await startService(['serve', '--port', '0', '--no-worker'], env);
const agent = new Agent({ keepAlive: true, maxSockets: 1 });
const { url, pid } = server.ready;

const BODY = { title: 'A title of some words', state: 'open', n: 1, tags: ['one', 'two'] };
const id = await store('plain', BODY);
const board = await store('boards', {});

type Sent = readonly [method: string, path: string, body: ((n: number) => object) | null];
const CASES: Readonly<Record<string, Sent>> = {
  update: ['PATCH', `/api/data/plain/${id}`, (n) => ({ n })],
  operator: ['PATCH', `/api/data/plain/${id}`, () => ({ $inc: { n: 1 } })],
  insert: ['POST', '/api/data/plain', () => BODY],
  constrained: ['POST', '/api/data/constrained', () => BODY],
  reference: ['POST', '/api/data/cards', () => ({ ...BODY, board })],
  checked: ['POST', '/api/data/checked', () => ({ ...BODY, board })],
  batch: ['POST', '/api/batch', () => batchOf(BATCH)],
};

const least = new Map<string, number>();
for (let block = 0; block < BLOCKS; block++) {
  for (const [name, sent] of Object.entries(CASES)) {
    for (let n = 0; n < 20; n++) await send(sent, n);
    const before = threadMicros(pid);
    for (let n = 0; n < REQUESTS; n++) await send(sent, n);
    const spent = (threadMicros(pid) - before) / REQUESTS;
    least.set(name, Math.min(spent, least.get(name) ?? Infinity));
  }
}

const of = (name: string): number => least.get(name)!;
console.log(`load ${loadavg()[0]!.toFixed(1)}; processor µs of a request, beside what it is compared with`);
const times = (name: string, base: string, goal: number): void => {
  const is = of(name) / of(base);
  const figures = `${of(name).toFixed(0)} / ${of(base).toFixed(0)} = ${is.toFixed(2)}x`;
  console.log(`${name.padEnd(14)}${figures.padEnd(24)}goal ${goal}x ${is <= goal ? 'met' : 'missed'}`);
};
times('operator', 'update', 1.1);
times('batch', 'insert', 3);
times('constrained', 'insert', 1.03);
const more = of('checked') - of('reference');
const figures = `${of('checked').toFixed(0)} - ${of('reference').toFixed(0)} = ${more.toFixed(1)} µs`;
console.log(`${'checked'.padEnd(14)}${figures.padEnd(24)}goal 10 µs ${more <= 10 ? 'met' : 'missed'}`);

const LARGE_BATCH = 100;
const beside = new Agent({ keepAlive: true, maxSockets: 1 });
const alone = await quietest(() => waits(REQUESTS));
const crowded = await quietest(async () => {
  let isDone = false;
  const batches = (async () => {
    while (!isDone) await send(['POST', '/api/batch', () => batchOf(LARGE_BATCH)], 0, beside);
  })();
  const found = await waits(REQUESTS);
  isDone = true;
  await batches;
  return found;
});
const later = crowded - alone;
const waited = `${crowded.toFixed(1)} - ${alone.toFixed(1)} = ${later.toFixed(1)} ms`;
console.log(`${'p99 beside'.padEnd(14)}${waited.padEnd(24)}goal 4 ms ${later <= 4 ? 'met' : 'missed'}`);

beside.destroy();
agent.destroy();
await server.stop();
await dir.remove();

/** Makes the project and its collections; answers its secret key. */
async function fill(): Promise<string> {
  const { config } = loadConfig([{ source: 'bench', values: env }]);
  const app = await openApp(config, openLogger({ level: 'warn', format: 'json' }));
  try {
    const { project, secret: key } = await buildProject(app);
    const plain = ['title:String!', 'state:String', 'n:Number', 'tags:Array(String)'];
    const constrained = [
      'title:String{minLength:1,maxLength:80}!',
      'state:String{enum:open|closed}',
      'n:Number{min:0,integer}',
      'tags:Array(String{maxLength:20}){maxItems:20}',
    ];
    const add = (name: string, specs: string[]) =>
      addCollection(app, project, { name, fields: specs.map(parseFieldSpec) });
    await add('boards', ['name:String']);
    await add('plain', plain);
    await add('constrained', constrained);
    await add('cards', [...plain, 'board:Ref(boards)!']);
    await add('checked', [...plain, 'board:Ref(boards)!{check}']);
    return key;
  } finally {
    await app.close();
  }
}

async function store(collection: string, body: object): Promise<string> {
  const stored = await send(['POST', `/api/data/${collection}`, () => body], 0);
  return (JSON.parse(stored) as { _id: string })._id;
}

function batchOf(length: number): object {
  return { operations: Array.from({ length }, () => ({ op: 'insert', collection: 'plain', body: BODY })) };
}

async function quietest(block: () => Promise<number>): Promise<number> {
  let found = Infinity;
  for (let n = 0; n < BLOCKS; n++) found = Math.min(found, await block());
  return found;
}

/** The 99th of a hundred waits for the read of one document, in milliseconds. */
async function waits(requests: number): Promise<number> {
  const taken: number[] = [];
  for (let n = 0; n < requests; n++) {
    const begun = performance.now();
    await send(['GET', `/api/data/plain/${id}`, null], n);
    taken.push(performance.now() - begun);
  }
  return taken.sort((a, b) => a - b)[Math.floor(taken.length * 0.99)]!;
}

function send([method, path, body]: Sent, n: number, through = agent): Promise<string> {
  const headers = { 'x-api-key': secret, 'content-type': 'application/json' };
  return new Promise((resolve, reject) => {
    const sent = request(`${url}${path}`, { method, agent: through, headers }, (reply) => {
      const parts: Buffer[] = [];
      reply.on('data', (part: Buffer) => parts.push(part));
      reply.on('end', () => {
        const text = Buffer.concat(parts).toString();
        if (reply.statusCode! < 300) resolve(text);
        else reject(new Error(`${method} ${path}: ${text}`));
      });
    });
    sent.on('error', reject);
    sent.end(body === null ? undefined : JSON.stringify(body(n)));
  });
}
