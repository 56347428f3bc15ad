import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createWriteStream, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import autocannon from 'autocannon';
import { runOrThrow, startService } from '../helpers/run-binary.js';
import { openTempDir } from '../helpers/temp-dir.js';
import { cpuSeconds, memoryMib } from './process-cost.js';

/*
 * The server on the embedded store in a process of its own, driven over HTTP, beside two floors in the same run.
 * CPU per request is the server's own, user and system, as the kernel counts it; compare ratios, not machines.
 *
 *   npm run bench                        every case, 10,000 documents, concurrency 32
 *   npm run bench -- --documents 200000 --concurrency 1,32,128 --seconds 5 --out now.json --compare before.json
 */

const { values: options } = parseArgs({
  options: {
    documents: { type: 'string', default: '10000' },
    concurrency: { type: 'string', default: '32' },
    seconds: { type: 'string', default: '5' },
    only: { type: 'string' },
    out: { type: 'string' },
    compare: { type: 'string' },
  },
});
const DOCUMENTS = options.documents.split(',').map(Number);
const CONCURRENCY = options.concurrency.split(',').map(Number);
const SECONDS = Number(options.seconds);
/** So many documents share a value of the filtered field, whatever the size of the collection. */
const GROUP = 50;
/** Groups of the private collection's one owner. */
const OWN_GROUPS = 2;
/** Of documents that the bench itself creates, so that the groups of the others stay as small as they are. */
const CREATED = -1;

interface Target {
  url: string;
  pid: number;
}

interface Row {
  case: string;
  documents: number;
  concurrency: number;
  requestsPerSecond: number;
  p50: number;
  p99: number;
  cpuMicros: number;
  /** How much of it is the kernel's, mostly for sending. */
  systemMicros: number;
  memoryMib: number;
  failed: number;
}

type Request = NonNullable<autocannon.Options['requests']>[number];

interface Case {
  name: string;
  requests: (world: World) => Request[];
}

/** What the requests need to know of the stored data. */
interface World {
  secret: string;
  publishable: string;
  ids: string[];
  groups: number;
  bearer: string;
}

const json = { 'content-type': 'application/json' };
const pick = <T>(list: readonly T[]): T => list[Math.floor(Math.random() * list.length)]!;
const title = 'x'.repeat(330);

const CASES: Case[] = [
  { name: 'get by id', requests: (world) => many(() => get(world, `/api/data/posts/${pick(world.ids)}`)) },
  { name: 'list 20', requests: (world) => many(() => get(world, listPath('posts', world.groups))) },
  {
    name: 'list 20, RLS private',
    requests: (world) => many(() => get(world, listPath('own', OWN_GROUPS), world.bearer)),
  },
  { name: 'create', requests: (world) => [post(world, '/api/data/posts', { title, group: CREATED, views: 1 })] },
  {
    name: 'update one field',
    requests: (world) =>
      many(() => patch(world, `/api/data/posts/${pick(world.ids)}`, { views: Math.floor(Math.random() * 1e6) })),
  },
  {
    name: 'mix 80/20',
    requests: (world) =>
      many((index) =>
        index % 5 === 0
          ? patch(world, `/api/data/posts/${pick(world.ids)}`, { views: index })
          : get(world, `/api/data/posts/${pick(world.ids)}`),
      ),
  },
  {
    name: 'aggregate $group',
    requests: (world) =>
      many(() =>
        post(world, '/api/data/posts/aggregate', {
          pipeline: [
            { $match: { group: Math.floor(Math.random() * world.groups) } },
            { $group: { _id: '$group', views: { $sum: '$views' } } },
          ],
        }),
      ),
  },
  {
    name: 'create 10 KB',
    requests: (world) => [post(world, '/api/data/posts', { title: 'y'.repeat(10_000), group: CREATED, views: 1 })],
  },
  {
    name: 'login',
    requests: (world) => [
      post({ ...world, secret: world.publishable }, '/api/userAuth/login', {
        email: 'ann@example.com',
        password: 'correct horse',
      }),
    ],
  },
];

const listPath = (collection: string, groups: number): string =>
  `/api/data/${collection}?group=${Math.floor(Math.random() * groups)}&sort=-createdAt`;
const many = (make: (index: number) => Request): Request[] => Array.from({ length: 500 }, (_, index) => make(index));
const get = (world: World, path: string, bearer?: string): Request => ({
  method: 'GET',
  path,
  headers: { 'x-api-key': world.publishable, ...(bearer && { authorization: `Bearer ${bearer}` }) },
});
const post = (world: World, path: string, body: object): Request => ({
  method: 'POST',
  path,
  headers: { ...json, 'x-api-key': world.secret },
  body: JSON.stringify(body),
});
const patch = (world: World, path: string, body: object): Request => ({ ...post(world, path, body), method: 'PATCH' });

const rows: Row[] = [];
await measureFloors();
for (const documents of DOCUMENTS) await measureService(documents);
report();

async function measureFloors(): Promise<void> {
  for (const [name, kind, path] of [
    ['floor: node:http constant', 'node', '/'],
    ['floor: Koa constant', 'koa', '/api/data/posts/1'],
    ['floor: Koa constant list', 'koa', '/api/data/posts'],
  ] as const) {
    const floors = join(import.meta.dirname, 'floors.ts');
    const child = spawn(process.execPath, ['--import', 'tsx', floors, kind], { stdio: ['ignore', 'pipe', 'inherit'] });
    const [line] = (await once(child.stdout, 'data')) as [Buffer];
    const target = JSON.parse(line.toString()) as Target;
    try {
      for (const concurrency of CONCURRENCY)
        rows.push(await measure(target, name, [{ method: 'GET', path }], 0, concurrency));
    } finally {
      child.kill('SIGTERM');
      await once(child, 'exit');
    }
  }
}

async function measureService(documents: number): Promise<void> {
  const { path: folder, remove } = await openTempDir();
  const env = { BSVC_DATA_DIR: join(folder, 'data'), BSVC_LOG_LEVEL: 'warn', BSVC_PROJECT: 'bench' };
  try {
    const keys = await fill(folder, env, documents);
    const started = performance.now();
    const server = await startService(['serve', '--port', '0'], env);
    const target = server.ready;
    const ready = await fetch(`${target.url}/api/health`);
    console.log(
      `${documents} documents; cold start to the first healthy answer: ${Math.round(performance.now() - started)} ms (${ready.status}); idle memory ${Math.round(memoryMib(target.pid))} MiB`,
    );
    try {
      const world = await meet(target, keys, documents);
      for (const one of CASES.filter(({ name }) => !options.only || name.includes(options.only))) {
        for (const concurrency of CONCURRENCY)
          rows.push(await measure(target, one.name, one.requests(world), documents, concurrency));
      }
    } finally {
      await server.stop();
    }
  } finally {
    await remove();
  }
}

interface Keys {
  publishable: string;
  secret: string;
}

/** Projects and documents by the command line, as an operator would. */
async function fill(folder: string, env: Record<string, string>, documents: number): Promise<Keys> {
  const { keys } = JSON.parse(await runOrThrow(['project', 'create', 'bench', '--json'], env)) as { keys: Keys };
  const fields = [
    '--field',
    'title:String!',
    '--field',
    'group:Number',
    '--field',
    'views:Number=0',
    '--index',
    'group',
  ];
  await runOrThrow(['collection', 'add', 'posts', ...fields], env);
  await runOrThrow(['collection', 'add', 'own', ...fields, '--rls', 'private'], env);
  const file = join(folder, 'posts.ndjson');
  const stream = createWriteStream(file);
  for (let index = 0; index < documents; index++) {
    if (!stream.write(`${JSON.stringify({ title, group: Math.floor(index / GROUP), views: index })}\n`))
      await once(stream, 'drain');
  }
  stream.end();
  await once(stream, 'finish');
  await runOrThrow(['data', 'import', 'posts', file, '--json'], env);
  return keys;
}

async function meet(target: Target, keys: Keys, documents: number): Promise<World> {
  const call = async (path: string, key: string, body?: object, bearer?: string): Promise<Record<string, never>> => {
    const reply = await fetch(target.url + path, {
      method: body ? 'POST' : 'GET',
      headers: { ...json, 'x-api-key': key, ...(bearer && { authorization: `Bearer ${bearer}` }) },
      ...(body && { body: JSON.stringify(body) }),
    });
    if (!reply.ok) throw new Error(`${path}: ${reply.status} ${await reply.text()}`);
    return (await reply.json()) as Record<string, never>;
  };
  const page = (await call('/api/data/posts?limit=1000&fields=group', keys.secret)) as unknown as {
    data: { items: { _id: string }[] };
  };
  const { accessToken } = await call('/api/userAuth/signup', keys.publishable, {
    email: 'ann@example.com',
    password: 'correct horse',
  });
  const groups = documents / GROUP;
  // The private list gets as many documents of one owner as the public one has in a group.
  const mine = Array.from({ length: OWN_GROUPS * GROUP }, (_, index) => ({
    title,
    group: index % OWN_GROUPS,
    views: index,
  }));
  await call('/api/data/own/bulk', keys.publishable, mine as unknown as object, accessToken as unknown as string);
  return { ...keys, ids: page.data.items.map((item) => item._id), groups, bearer: accessToken as unknown as string };
}

async function measure(
  target: Target,
  name: string,
  requests: Request[],
  documents: number,
  concurrency: number,
): Promise<Row> {
  const shoot = (seconds: number): Promise<autocannon.Result> =>
    autocannon({ url: target.url, connections: concurrency, duration: seconds, requests, pipelining: 1 });
  await shoot(Math.min(2, SECONDS));
  const before = cpuSeconds(target.pid);
  const result = await shoot(SECONDS);
  const after = cpuSeconds(target.pid);
  const cpu = after.user + after.system - before.user - before.system;
  const count = result.requests.total;
  const row: Row = {
    case: name,
    documents,
    concurrency,
    requestsPerSecond: Math.round(result.requests.average),
    p50: result.latency.p50,
    p99: result.latency.p99,
    cpuMicros: Math.round((cpu / count) * 1e6),
    systemMicros: Math.round(((after.system - before.system) / count) * 1e6),
    memoryMib: Math.round(memoryMib(target.pid)),
    failed: result.non2xx + result.errors,
  };
  console.log(format(row));
  return row;
}

function format(row: Row): string {
  const floor = rows.find((one) => one.case === 'floor: Koa constant' && one.concurrency === row.concurrency);
  const ratio = floor ? `${(row.cpuMicros / floor.cpuMicros).toFixed(2)}x Koa` : '';
  return [
    row.case.padEnd(26),
    String(row.documents || '').padStart(7),
    `c=${row.concurrency}`.padStart(6),
    `${row.requestsPerSecond}/s`.padStart(9),
    `p50 ${row.p50} ms`.padStart(11),
    `p99 ${row.p99} ms`.padStart(12),
    `${row.cpuMicros} us (${row.systemMicros} system)`.padStart(21),
    ratio.padStart(10),
    `${row.memoryMib} MiB`.padStart(8),
    row.failed ? `  ${row.failed} FAILED` : '',
  ].join(' ');
}

function report(): void {
  if (options.out) writeFileSync(options.out, JSON.stringify(rows, null, 1));
  if (!options.compare) return;
  const earlier = JSON.parse(readFileSync(options.compare, 'utf8')) as Row[];
  console.log('\nagainst the earlier run, CPU per request relative to the Koa floor of each run:');
  for (const row of rows) {
    const same = earlier.find(
      (one) => one.case === row.case && one.documents === row.documents && one.concurrency === row.concurrency,
    );
    if (same)
      console.log(
        `${row.case.padEnd(26)} ${row.documents} c=${row.concurrency}  ${(relative(row, rows) / relative(same, earlier)).toFixed(2)}x`,
      );
  }
}

function relative(row: Row, all: Row[]): number {
  return (
    row.cpuMicros /
    all.find((one) => one.case === 'floor: Koa constant' && one.concurrency === row.concurrency)!.cpuMicros
  );
}
