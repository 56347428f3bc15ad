import { readFileSync } from 'node:fs';
import { Agent, request } from 'node:http';
import { connect } from 'node:net';
import { join } from 'node:path';
import { ROUTE_LISTS } from '../../../src/api.js';
import type { Random } from '../random.js';
import { startService, type RunningService } from '../run-binary.js';
import { openTempDir } from '../temp-dir.js';
import { growExample, OPERATORS } from './grow.js';

const TOKEN = 'operator-token-of-the-attacked-service';
/** Bodies may have a megabyte. */
const SIZES = [2_000, 15_000, 40_000, 75_000, 140_000, 1_000_000];
const MAX_STALL_MS = 100;
const MAX_GROWTH_BYTES = 64 * 1024 ** 2;

/** A service with two projects: the strangers' target and its neighbour. */
export interface Target {
  service: RunningService;
  stalls: string;
  publishable: string;
  userToken: string;
  /** A document of the user's own. */
  document: string;
  neighbour: string;
  close(): Promise<void>;
}

/** One request as strangers send it. */
interface Shot {
  method: string;
  path: string;
  headers: Record<string, string>;
  body: string;
  /** Says what it is, for people. */
  name: string;
}

/** What a volley did to the service. */
interface Damage {
  name: string;
  stallMs: number;
  grownMb: number;
  statuses: Record<string, number>;
  /** The other project's reads while it went on. */
  neighbour: { served: number; failed: number };
}

function idIn(data: unknown): string {
  return /"(?:id|_id)":"([0-9a-f]{24})"/.exec(JSON.stringify(data))![1]!;
}

let addresses = 0;
const nextAddress = (): string => `10.${(addresses >> 16) & 255}.${(addresses >> 8) & 255}.${addresses++ & 255}`;

export async function openTarget(): Promise<Target> {
  const dir = await openTempDir();
  const stalls = join(dir.path, 'stalls');
  const service = await startService(['serve', '--port', '0'], {
    BSVC_DATA_DIR: join(dir.path, 'data'),
    BSVC_ADMIN_TOKEN: TOKEN,
    BSVC_TRUST_PROXY: '1',
    BSVC_RATE_LIMIT: '100/15m',
    BSVC_AUTH_RATE_LIMIT: '20/15m',
    BSVC_BCRYPT_COST: '4',
    BSVC_LOG_LEVEL: 'error',
    NODE_OPTIONS: `--require ${join(import.meta.dirname, 'stall-monitor.cjs')}`,
    STALLS_FILE: stalls,
  });
  const operator = { authorization: `Bearer ${TOKEN}` };
  const post = async (path: string, body: unknown, headers: Record<string, string>): Promise<unknown> => {
    const answer = await send(
      service.ready.url,
      { method: 'POST', path, headers, body: JSON.stringify(body), name: '' },
      nextAddress(),
    );
    if (answer.status >= 300) throw new Error(`${path}: ${answer.status} ${answer.text}`);
    return JSON.parse(answer.text);
  };
  const build = async (name: string): Promise<{ publishable: string; secret: string }> => {
    const { data } = (await post('/api/projects', { name }, operator)) as {
      data: { project: { id: string }; keys: { publishable: string; secret: string } };
    };
    const projectId = idIn(data);
    await post(
      `/api/projects/${projectId}/collections`,
      { name: 'posts', mode: 'flexible', rls: { mode: 'public-read', ownerField: 'userId' } },
      operator,
    );
    await post('/api/data/posts', { title: 'Hello' }, { 'x-api-key': data.keys.secret });
    return data.keys;
  };
  const { publishable } = await build('target');
  const neighbour = (await build('neighbour')).publishable;
  const { accessToken } = (await post(
    '/api/userAuth/signup',
    { email: 'a@example.com', password: 'correct horse 1' },
    { 'x-api-key': publishable },
  )) as { accessToken: string };
  const { _id: document } = (await post(
    '/api/data/posts',
    { title: 'Mine' },
    { 'x-api-key': publishable, authorization: `Bearer ${accessToken}` },
  )) as { _id: string };
  return {
    service,
    stalls,
    publishable,
    document,
    userToken: accessToken,
    neighbour,
    async close() {
      await service.stop('SIGKILL');
      await dir.remove();
    },
  };
}

const agent = new Agent({ keepAlive: true, maxSockets: 60 });

function send(
  url: string,
  { method, path, headers, body }: Shot,
  address: string,
  ms = 60_000,
): Promise<{ status: number; text: string }> {
  return new Promise((resolve) => {
    const length = body === '' ? {} : { 'content-type': 'application/json', 'content-length': Buffer.byteLength(body) };
    const outgoing = request(
      url + path,
      { method, agent, timeout: ms, headers: { ...length, ...headers, 'x-forwarded-for': address } },
      (reply) => {
        let text = '';
        reply.setEncoding('utf8').on('data', (part: string) => (text.length < 10_000 ? (text += part) : undefined));
        reply.on('end', () => resolve({ status: reply.statusCode!, text }));
        reply.on('error', () => resolve({ status: 0, text }));
      },
    );
    outgoing.on('timeout', () => outgoing.destroy());
    outgoing.on('error', (error) => resolve({ status: 0, text: error.message }));
    outgoing.end(body);
  });
}

/** The requests that grow the examples of all routes that strangers may call, by every operator and size. */
function listShots({ publishable, userToken, document }: Target): Shot[] {
  const shots: Shot[] = [];
  for (const { method, path, example } of ROUTE_LISTS.flatMap(({ routes }) => routes)) {
    if (example === undefined || path.startsWith('/api/projects')) continue;
    const filled = path.replace(':collectionName', 'posts').replace(/:\w+/g, document);
    const callers: Record<string, Record<string, string>> = {
      nobody: {},
      user: { 'x-api-key': publishable, authorization: `Bearer ${userToken}` },
    };
    for (const [caller, headers] of Object.entries(callers)) {
      for (const [operator, grow] of Object.entries(OPERATORS)) {
        for (const size of SIZES) {
          for (const { key, body } of growExample(example, grow, size)) {
            shots.push({
              method,
              path: filled,
              headers,
              body,
              name: `${method} ${path} ${caller} ${operator} ${key} ${size}`,
            });
          }
        }
      }
    }
  }
  return shots;
}

const mainThread = (pid: number): number =>
  Number(readFileSync(`/proc/${pid}/task/${pid}/schedstat`, 'latin1').split(' ')[0]) / 1e6;
const residentBytes = (pid: number): number =>
  Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'latin1'))![1]) * 1024;

/** Milliseconds of the main thread that a shot takes by itself. */
async function costOf({ service }: Target, shot: Shot): Promise<{ ms: number; status: number }> {
  const { pid, url } = service.ready;
  const before = mainThread(pid);
  const { status } = await send(url, shot, nextAddress());
  return { ms: mainThread(pid) - before, status };
}

/** Sends a shot so many times at once, from one address or several, and looks what it does to the others. */
async function fire(target: Target, shot: Shot, times: number, from: number): Promise<Damage> {
  const { url } = target.service.ready;
  const sources = Array.from({ length: from }, nextAddress);
  return watch(target, `${times} x ${shot.name} from ${from}`, async () => {
    const answers = await Promise.all(Array.from({ length: times }, (_, at) => send(url, shot, sources[at % from]!)));
    return answers.map(({ status }) => status);
  });
}

/** Opens connections that stop in the middle of a body, keeps them while it looks, and closes them. */
async function fireHalf(target: Target, { method, path, headers }: Shot, times: number, from: number): Promise<Damage> {
  const { hostname, port } = new URL(target.service.ready.url);
  const sources = Array.from({ length: from }, nextAddress);
  return watch(target, `${times} half ${method} ${path} from ${from}`, async () => {
    const head = Object.entries({
      host: 'x',
      'content-type': 'application/json',
      'content-length': '5000',
      ...headers,
    });
    const sockets = Array.from({ length: times }, (_, at) => {
      const socket = connect(Number(port), hostname).on('error', () => undefined);
      const lines = [...head, ['x-forwarded-for', sources[at % from]!]].map(([name, value]) => `${name}: ${value}`);
      socket.write(`${method} ${path} HTTP/1.1\r\n${lines.join('\r\n')}\r\n\r\n{"a":"`);
      return socket;
    });
    const before = await readNeighbour(target);
    const again = await readNeighbour(target);
    for (const socket of sockets) socket.destroy();
    return [before, again];
  });
}

async function readNeighbour({ service, neighbour }: Target): Promise<number> {
  const shot = {
    method: 'GET',
    path: '/api/data/posts?limit=1',
    headers: { 'x-api-key': neighbour },
    body: '',
    name: '',
  };
  return (await send(service.ready.url, shot, nextAddress(), 20_000)).status;
}

async function watch(target: Target, name: string, act: () => Promise<number[]>): Promise<Damage> {
  const { pid } = target.service.ready;
  const linesBefore = stallsOf(target).length;
  const memoryBefore = residentBytes(pid);
  const neighbour = { served: 0, failed: 0 };
  const acting = act();
  let isOver = false;
  const looking = (async () => {
    do {
      if ((await readNeighbour(target)) === 200) neighbour.served++;
      else neighbour.failed++;
      await new Promise((resolve) => setTimeout(resolve, 100));
    } while (!isOver);
  })();
  const statuses: Record<string, number> = {};
  for (const status of await acting) statuses[status] = (statuses[status] ?? 0) + 1;
  isOver = true;
  await looking;
  const stalls = stallsOf(target).slice(linesBefore);
  const grownMb = (residentBytes(pid) - memoryBefore) / 1024 ** 2;
  return { name, stallMs: Math.max(0, ...stalls), grownMb, statuses, neighbour };
}

const stallsOf = ({ stalls }: Target): number[] =>
  readFileSync(stalls, 'latin1').split('\n').filter(Boolean).map(Number);

/** What is wrong with a damage by the bounds of every stranger; empty when nothing is. */
function judge({ stallMs, grownMb, neighbour, statuses }: Damage, addressesUsed: number): string[] {
  const problems: string[] = [];
  if (stallMs >= MAX_STALL_MS) problems.push(`the event loop was kept for ${stallMs} ms of processor time`);
  if (grownMb * 1024 ** 2 > MAX_GROWTH_BYTES * addressesUsed) problems.push(`memory grew by ${grownMb.toFixed(0)} MB`);
  if (neighbour.failed > 0) problems.push(`${neighbour.failed} reads of another project were refused`);
  if (statuses['500']) problems.push('it failed with 500');
  return problems;
}

/** The number of dearest requests that are sent many at once, of each round. */
const WINNERS = 4;
/** The number of requests that a round tries one by one. */
const TRIED = 60;

/**
 * Rounds of looking for the requests that cost most for their length, and of sending the dearest at once, until the
 * time is over; one round at least. What was beyond the bounds.
 */
export async function attackFor(
  target: Target,
  random: Random,
  ms: number,
  tell: (line: string) => void = () => undefined,
  tried = TRIED,
): Promise<string[]> {
  const end = Date.now() + ms;
  const all = listShots(target);
  const problems: string[] = [];
  const note = (damage: Damage, used: number): void => {
    const { name, stallMs, grownMb, statuses, neighbour } = damage;
    tell(
      `${name}: stall ${stallMs} ms, memory ${grownMb.toFixed(0)} MB, ${JSON.stringify(statuses)}, others ${neighbour.served}`,
    );
    problems.push(...judge(damage, used).map((problem) => `${name}: ${problem}`));
  };
  do {
    const costs: { shot: Shot; ms: number }[] = [];
    for (let at = 0; at < tried; at++) {
      const shot = random.pick(all);
      costs.push({ shot, ms: (await costOf(target, shot)).ms });
    }
    // Hill climbing: what costs most for its length at one size is tried at the others too.
    const perByte = [...costs].sort(
      (a, b) => b.ms / (b.shot.body.length + 2_000) - a.ms / (a.shot.body.length + 2_000),
    );
    for (const { shot } of perByte.slice(0, WINNERS)) {
      const family = shot.name.replace(/\d+$/, '');
      for (const other of all.filter(({ name }) => name.startsWith(family) && name !== shot.name)) {
        costs.push({ shot: other, ms: (await costOf(target, other)).ms });
      }
    }
    costs.sort((a, b) => b.ms - a.ms);
    for (const { shot, ms: cost } of costs.slice(0, WINNERS)) {
      tell(`${shot.name}: ${cost.toFixed(1)} ms`);
      note(await fire(target, shot, 1, 1), 1);
      note(await fire(target, shot, 50, 1), 1);
      note(await fire(target, shot, 50, 20), 20);
    }
    note(await fireHalf(target, random.pick(all), 600, 1), 1);
    if (target.service.process.exitCode !== null) return [...problems, 'the process has ended'];
  } while (Date.now() < end);
  return problems;
}
