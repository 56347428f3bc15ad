import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { createWriteStream, existsSync, mkdirSync, openSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { buildSync } from 'esbuild';
import { BINARY, runOrThrow } from '../helpers/run-binary.js';
import { FIELDS, GROUP, makeDocument, OWN_GROUPS, type World } from './http-cases.js';

/** A server under measurement, started anew for each case. */
export interface Server {
  name: string;
  start: () => Promise<RunningServer>;
}

export interface RunningServer {
  url: string;
  pid: number;
  /** From the start of the process to its first answer. */
  startMs: number;
  world: World;
  stop: () => Promise<void>;
}

/** The service of this checkout, and that of another one. */
export const OWN_NAME = 'bsvc';
export const BESIDE_NAME = 'beside';

const SQLITE = 'better-sqlite3@12.11.1';
/** SQLite is compiled when it is installed, which is too much for every `npm ci`. */
const CACHE_FOLDER = join('node_modules', '.cache', 'bench');
const NOBODY: World = { secret: 'key', publishable: 'key', bearer: '', ids: ['a'.repeat(24)], cards: [], groups: 100 };

/** Koa with constants. */
export function koaConstant(): Server {
  return { name: 'Koa constant', start: () => startScript('floors.ts', [], NOBODY) };
}

/** Koa and better-sqlite3 by hand; null, and a line that says so, where that package cannot be installed. */
export function writtenByHand(folder: string, documents: number): Server | null {
  if (!existsSync(join(CACHE_FOLDER, 'node_modules/better-sqlite3'))) {
    mkdirSync(CACHE_FOLDER, { recursive: true });
    console.log(`installing ${SQLITE} into ${CACHE_FOLDER}`);
    spawnSync('npm', ['install', '--prefix', CACHE_FOLDER, SQLITE], { stdio: 'ignore' });
  }
  if (!existsSync(join(CACHE_FOLDER, 'node_modules/better-sqlite3/build/Release/better_sqlite3.node'))) {
    console.log(`SKIPPED: the server written by hand, since ${SQLITE} cannot be installed here`);
    return null;
  }
  const data = join(folder, 'by-hand.db');
  const world = { ...NOBODY, groups: documents / GROUP };
  const args = [join(process.cwd(), CACHE_FOLDER), data, String(documents), NOBODY.secret];
  return { name: 'by hand', start: () => startScript('by-hand.ts', args, world) };
}

/**
 * The service as it is shipped: access log written to a file, rate limits on with more than one client needs, data
 * filled by the command line. With a checkout it is the one that was built there. Flags are Node's; what they have it
 * print is in `log` of the folder.
 */
export async function service(
  folder: string,
  documents: number,
  checkout?: string,
  flags: readonly string[] = [],
): Promise<Server> {
  const binary = checkout === undefined ? BINARY : join(checkout, 'bin', 'bsvc.js');
  const started = built(folder, binary, flags);
  const keys = await fill(folder, documents, (words) => runOrThrow(words, started.env, binary));
  let world: World | undefined;
  return {
    name: checkout === undefined ? OWN_NAME : BESIDE_NAME,
    start: async () => {
      const running = await started.start();
      world ??= await meet(running.url, keys, documents);
      return { ...running, world };
    },
  };
}

/** The built service on a folder that nothing was stored in. */
export function emptyService(folder: string): { start: () => Promise<Omit<RunningServer, 'world'>> } {
  return built(folder, BINARY, []);
}

function built(folder: string, binary: string, flags: readonly string[]) {
  mkdirSync(folder, { recursive: true });
  const log = openSync(join(folder, 'log'), 'a');
  const env = {
    PATH: process.env.PATH!,
    BSVC_DATA_DIR: join(folder, 'data'),
    BSVC_PROJECT: 'bench',
    BSVC_RATE_LIMIT: '10000000/15m',
    BSVC_TRUST_PROXY: '1',
    BSVC_AUTH_RATE_LIMIT: '10000000/15m',
  };
  const start = async () => {
    const port = await freePort();
    const url = `http://127.0.0.1:${port}`;
    const begun = performance.now();
    const child = spawn(process.execPath, [...flags, binary, 'serve', '--port', String(port)], {
      env,
      stdio: ['ignore', log, log],
    });
    while (!(await isReady(url))) await new Promise((resolve) => setTimeout(resolve, 5));
    return { url, pid: child.pid!, startMs: performance.now() - begun, stop: () => end(child) };
  };
  return { env, start };
}

async function startScript(script: string, args: string[], world: World): Promise<RunningServer> {
  const file = compile(script);
  const begun = performance.now();
  const child = spawn(process.execPath, [file, ...args], { stdio: ['ignore', 'pipe', 'inherit'] });
  let told = '';
  while (!told.endsWith('\n')) told += String(((await once(child.stdout, 'data')) as [Buffer])[0]);
  const { url, pid, ids } = JSON.parse(told) as { url: string; pid: number; ids?: string[] };
  return {
    url,
    pid,
    startMs: performance.now() - begun,
    world: { ...world, ...(ids && { ids }) },
    stop: () => end(child),
  };
}

/** As it would be deployed: a loader of TypeScript would cost it time at its start. */
function compile(script: string): string {
  const outfile = join(CACHE_FOLDER, script.replace(/ts$/, 'mjs'));
  const source = join(import.meta.dirname, script);
  buildSync({ entryPoints: [source], outfile, bundle: true, packages: 'external', format: 'esm', platform: 'node' });
  return outfile;
}

async function end(child: ChildProcess): Promise<void> {
  child.kill('SIGTERM');
  if (child.exitCode === null && child.signalCode === null) await once(child, 'exit');
}

async function freePort(): Promise<number> {
  const probe = createServer().listen(0, '127.0.0.1');
  await once(probe, 'listening');
  const { port } = probe.address() as { port: number };
  probe.close();
  return port;
}

const isReady = (url: string): Promise<boolean> =>
  fetch(`${url}/api/health/ready`).then(
    ({ ok }) => ok,
    () => false,
  );

interface Keys {
  publishable: string;
  secret: string;
}

/** Projects and documents by the command line, as an operator would. */
async function fill(folder: string, documents: number, run: (words: string[]) => Promise<string>): Promise<Keys> {
  const { keys } = JSON.parse(await run(['project', 'create', 'bench', '--json'])) as { keys: Keys };
  // More than any plan has: what is measured must not end in refusals.
  await run(['project', 'update', 'bench', '--limit', 'database=1000000000000']);
  const fields = FIELDS.flatMap((field) => ['--field', field]);
  await run(['collection', 'add', 'posts', '--public', ...fields, '--index', 'group']);
  await run(['collection', 'add', 'own', ...fields, '--index', 'group', '--rls', 'private']);
  await run([
    'collection',
    'add',
    'seats',
    '--field',
    'user:String',
    '--field',
    'group:Number',
    '--index',
    'user,group',
  ]);
  await run(['collection', 'add', 'cards', ...fields, '--index', 'group']);
  const seated = 'doc.group in seats[user = user.id].group';
  await run(['collection', 'rls', 'cards', '--read', seated, '--update', seated, '--yes']);
  const file = join(folder, 'posts.ndjson');
  const stream = createWriteStream(file);
  for (let index = 0; index < documents; index++) {
    const line = `${JSON.stringify(makeDocument(index, Math.floor(index / GROUP)))}\n`;
    if (!stream.write(line)) await once(stream, 'drain');
  }
  stream.end();
  await once(stream, 'finish');
  await run(['data', 'import', 'posts', file, '--json']);
  return keys;
}

/** A user with as many private documents as a group of the public ones has, and the names of some documents. */
async function meet(url: string, keys: Keys, documents: number): Promise<World> {
  const call = async (path: string, key: string, body?: unknown, bearer?: string): Promise<unknown> => {
    const reply = await fetch(url + path, {
      method: body ? 'POST' : 'GET',
      headers: {
        'content-type': 'application/json',
        'x-api-key': key,
        ...(bearer && { authorization: `Bearer ${bearer}` }),
      },
      ...(body !== undefined && { body: JSON.stringify(body) }),
    });
    if (!reply.ok) throw new Error(`${path}: ${reply.status} ${await reply.text()}`);
    return await reply.json();
  };
  const page = (await call('/api/data/posts?limit=1000&fields=group', keys.secret)) as {
    data: { items: { _id: string }[] };
  };
  const ann = { email: 'ann@example.com', password: 'correct horse' };
  const { accessToken, user } = (await call('/api/userAuth/signup', keys.publishable, ann)) as {
    accessToken: string;
    user: { _id: string };
  };
  const seats = Array.from({ length: OWN_GROUPS }, (_, group) => ({ user: user._id, group }));
  await call('/api/data/seats/bulk', keys.secret, seats);
  const mine = Array.from({ length: OWN_GROUPS * GROUP }, (_, index) => makeDocument(index, index % OWN_GROUPS));
  await call('/api/data/own/bulk', keys.publishable, mine, accessToken);
  await call('/api/data/cards/bulk', keys.secret, mine);
  const shared = (await call('/api/data/cards?limit=100&fields=group', keys.secret)) as typeof page;
  const [ids, cards] = [page, shared].map(({ data }) => data.items.map(({ _id }) => _id)) as [string[], string[]];
  return { ...keys, bearer: accessToken, ids, cards, groups: documents / GROUP };
}
