import { setTimeout as pause } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { runOrThrow, startService } from '../helpers/run-binary.js';
import { openTempDir } from '../helpers/temp-dir.js';

/*
 * Two questions about sign-ins, asked of the server in a process of its own, bcrypt at its real cost: how long do reads
 * of documents take while many sign in at once, and does the time of a refusal tell whether an address has an account?
 *
 * npx tsx test/bench/logins.ts [--logins 64] [--seconds 10] [--rounds 3] [--rate 100] [--tries 200]
 */

const { values: options } = parseArgs({
  options: {
    logins: { type: 'string', default: '64' },
    seconds: { type: 'string', default: '10' },
    rounds: { type: 'string', default: '3' },
    rate: { type: 'string', default: '100' },
    tries: { type: 'string', default: '200' },
  },
});
const PASSWORD = 'correct horse battery';
const FLOOD = 500;

interface World {
  url: string;
  publishable: string;
  document: string;
}

const dir = await openTempDir();
const env = { BSVC_DATA_DIR: dir.path, BSVC_LOG_LEVEL: 'error' };
const server = await startService(['serve', '--port', '0'], env);
try {
  const world = await prepare(server.ready.url);
  await compareReads(world);
  await floodLogins(world);
  await compareRefusals(world);
} finally {
  await server.stop();
  await dir.remove();
}

async function prepare(url: string): Promise<World> {
  const { keys } = JSON.parse(await runOrThrow(['project', 'create', 'bench', '--json'], env)) as {
    keys: { publishable: string; secret: string };
  };
  await runOrThrow(['collection', 'add', 'posts', '--project', 'bench', '--flexible'], env);
  const created = await send({ url, publishable: keys.secret }, 'POST', '/api/data/posts', { title: 'x'.repeat(300) });
  const { _id } = (await created.json()) as { _id: string };
  const world = { url, publishable: keys.publishable, document: _id };
  await send(world, 'POST', '/api/userAuth/signup', { email: 'known@example.test', password: PASSWORD });
  return world;
}

function send(
  world: Pick<World, 'url' | 'publishable'>,
  method: string,
  path: string,
  body?: unknown,
): Promise<Response> {
  return fetch(world.url + path, {
    method,
    headers: { 'x-api-key': world.publishable, 'content-type': 'application/json' },
    ...(body !== undefined && { body: JSON.stringify(body) }),
  });
}

/** Reads at a fixed rate, whether or not earlier ones were answered: a client that waits would hide the worst. */
async function measureReads(world: World, seconds: number): Promise<number[]> {
  const times: number[] = [];
  const pending: Promise<void>[] = [];
  const started = performance.now();
  const everyMs = 1000 / Number(options.rate);
  for (let count = 0; count < seconds * Number(options.rate); count++) {
    const due = started + count * everyMs;
    if (performance.now() < due) await pause(due - performance.now());
    const sent = performance.now();
    pending.push(
      send(world, 'GET', `/api/data/posts/${world.document}`).then(async (reply) => {
        await reply.arrayBuffer();
        if (reply.status === 200) times.push(performance.now() - sent);
      }),
    );
  }
  await Promise.all(pending);
  return times;
}

/** Keeps so many sign-ins under way until told to stop. */
function keepLoggingIn(world: World, count: number): { answered(): number; stop(): Promise<void> } {
  let going = true;
  let answered = 0;
  const loops = Array.from({ length: count }, async () => {
    while (going) {
      const reply = await send(world, 'POST', '/api/userAuth/login', {
        email: 'known@example.test',
        password: PASSWORD,
      });
      await reply.arrayBuffer();
      if (reply.status === 200) answered += 1;
    }
  });
  return {
    answered: () => answered,
    async stop() {
      going = false;
      await Promise.all(loops);
    },
  };
}

async function compareReads(world: World): Promise<void> {
  const seconds = Number(options.seconds);
  const rows = [];
  await measureReads(world, 2);
  for (let round = 1; round <= Number(options.rounds); round++) {
    const idle = await measureReads(world, seconds);
    const logins = keepLoggingIn(world, Number(options.logins));
    await pause(500);
    const started = performance.now();
    const before = logins.answered();
    const busy = await measureReads(world, seconds);
    const elapsed = (performance.now() - started) / 1000;
    const answered = logins.answered() - before;
    await logins.stop();
    rows.push({
      round,
      'idle p50': shown(idle, 0.5),
      'idle p99': shown(idle, 0.99),
      'busy p50': shown(busy, 0.5),
      'busy p99': shown(busy, 0.99),
      'p99 ratio': Number((quantile(busy, 0.99) / quantile(idle, 0.99)).toFixed(2)),
      'logins/s': Number((answered / elapsed).toFixed(1)),
    });
  }
  console.log(`Reads of one document (ms) at ${options.rate}/s, idle and beside ${options.logins} concurrent sign-ins`);
  console.table(rows);
}

async function floodLogins(world: World): Promise<void> {
  const started = performance.now();
  const replies = await Promise.all(
    Array.from({ length: FLOOD }, async () => {
      const reply = await send(world, 'POST', '/api/userAuth/login', {
        email: 'known@example.test',
        password: PASSWORD,
      });
      await reply.arrayBuffer();
      return { status: reply.status, ms: performance.now() - started, retryAfter: reply.headers.get('retry-after') };
    }),
  );
  const refused = replies.filter(({ status }) => status === 503);
  const served = replies.filter(({ status }) => status === 200);
  console.log(
    `${FLOOD} sign-ins at once: ${served.length} served within ${Math.round(Math.max(...served.map(({ ms }) => ms)))} ms, ` +
      `${refused.length} refused with 503, Retry-After ${refused[0]?.retryAfter ?? '-'}`,
  );
}

async function compareRefusals(world: World): Promise<void> {
  const times = { wrong: [] as number[], unknown: [] as number[] };
  const tries = Number(options.tries);
  for (let count = 0; count < tries; count++) {
    // A new account for every fourth try, so that none is locked.
    const known = `known${Math.floor(count / 4)}@example.test`;
    if (count % 4 === 0) await send(world, 'POST', '/api/userAuth/signup', { email: known, password: PASSWORD });
    for (const kind of count % 2 === 0 ? (['wrong', 'unknown'] as const) : (['unknown', 'wrong'] as const)) {
      const email = kind === 'wrong' ? known : `nobody${count}@example.test`;
      const started = performance.now();
      const reply = await send(world, 'POST', '/api/userAuth/login', { email, password: 'a wrong password' });
      await reply.arrayBuffer();
      if (reply.status !== 401) throw new Error(`a refusal answered ${reply.status}`);
      times[kind].push(performance.now() - started);
    }
  }
  const difference = quantile(times.unknown, 0.5) / quantile(times.wrong, 0.5) - 1;
  console.log(
    `${tries} refusals each, median ms: wrong password ${shown(times.wrong, 0.5)}, unknown address ${shown(times.unknown, 0.5)}, ` +
      `difference ${(difference * 100).toFixed(1)} %`,
  );
}

function quantile(values: readonly number[], share: number): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN;
}

function shown(values: readonly number[], share: number): number {
  return Number(quantile(values, share).toFixed(1));
}
