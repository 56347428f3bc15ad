import { ObjectId } from 'bson';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { migrate } from '../world/app.js';
import { defaultUsersCollection, documentsName, parseFieldSpec } from '../world/collections.js';
import { signAccessToken } from '../world/users.js';
import { buildCollection, buildProject } from '../helpers/build-project.js';
import { eventually } from '../helpers/eventually.js';
import { findFreePort } from '../helpers/listen.js';
import { childrenOf } from '../helpers/process-tree.js';
import { startDatabase, startService, type RunningService } from '../helpers/run-binary.js';
import { openTempDir, type TempDir } from '../helpers/temp-dir.js';
import { withApp } from '../helpers/with-app.js';

const AT_ONCE = 40;
const [USER, MEMBERSHIP, CARD] = Array.from({ length: 3 }, () => new ObjectId().toHexString()) as [
  string,
  string,
  string,
];

let dir: TempDir;
let store: Record<string, string>;
let server: Record<string, string>;
let member: Record<string, string>;
const running: RunningService[] = [];

beforeEach(async () => {
  dir = await openTempDir();
  store = {
    BSVC_DATA_DIR: dir.path,
    BSVC_LOG_LEVEL: 'silent',
    BSVC_SECRET_KEY: '0123456789abcdef0123456789abcdef',
    BSVC_DURABILITY: 'relaxed',
    BSVC_RATE_LIMIT: '1000000/15m',
  };
  await withApp(store, async (app) => {
    await migrate(app.db);
    const { project, secret, publishable } = await buildProject(app);
    const build = (name: string, specs: string[], more: object = {}) =>
      buildCollection(app, project, { name, fields: specs.map(parseFieldSpec), ...more });
    const team = 'doc.team in members[user = user.id].team';
    await build('members', ['team:String!', 'user:String!'], { access: 'server-only' });
    await build('cards', ['team:String!', 'n:Number=0'], { rules: { read: team, update: team } });
    await build('counters', ['n:Number=0', 'list:Array(Number){maxItems:10}']);
    await build('bookings', ['staff:String!', 'at:String!'], { uniques: [['staff', 'at']] });
    await build('pages', ['slug:String!&', 'by:String']);
    await app.db
      .collection(documentsName(defaultUsersCollection(project._id)))
      .insertOne({ _id: new ObjectId(USER), email: 'a@example.test', isDeleted: false, _bsvc: {} } as never);
    server = { 'x-api-key': secret };
    const token = signAccessToken(app, project, USER, 3_600_000);
    member = { 'x-api-key': publishable, authorization: `Bearer ${token}` };
  });
});
afterEach(async () => {
  for (const service of running.splice(0).reverse()) await service.stop('SIGTERM');
  await dir.remove();
});

async function start(words: string[], env: Record<string, string>): Promise<string> {
  const service = await startService(['serve', '--port', '0', ...words], env);
  running.push(service);
  return service.ready.url;
}

describe('writes at the same time', () => {
  it.each([
    ['by one process', 1, false],
    ['by two processes', 2, false],
    ['by two processes on a MongoDB', 2, true],
  ])('lose nothing and break no bound: %s', async (_, processes, isMongodb) => {
    const { database, env } = isMongodb ? await startDatabase(store) : { database: null, env: store };
    if (database) running.push(database);
    const url = await start(['--processes', String(processes)], env);
    const call = async (method: string, path: string, body?: object, headers = server) => {
      const reply = await fetch(`${url}/api/data/${path}`, {
        method,
        headers: { ...headers, 'content-type': 'application/json' },
        ...(body && { body: JSON.stringify(body) }),
      });
      return { status: reply.status, body: (await reply.json()) as { code?: string; n?: number; list?: number[] } };
    };
    const atOnce = async (work: (at: number) => ReturnType<typeof call>): Promise<number[]> =>
      (await Promise.all(Array.from({ length: AT_ONCE }, (_, at) => work(at)))).map(({ status }) => status).sort();

    const counter = new ObjectId().toHexString();
    await call('POST', 'counters', { _id: counter });
    const counted = await atOnce(() => call('PATCH', `counters/${counter}`, { $inc: { n: 1 } }));
    expect(counted).toEqual(Array(AT_ONCE).fill(200));
    const pushed = await atOnce((at) => call('PATCH', `counters/${counter}`, { $push: { list: at } }));
    expect(pushed).toEqual([...Array<number>(10).fill(200), ...Array<number>(AT_ONCE - 10).fill(400)]);
    const { n, list } = (await call('GET', `counters/${counter}`)).body;
    expect([n, new Set(list).size, list!.length]).toEqual([AT_ONCE, 10, 10]);

    const booked = await atOnce((at) => call('POST', 'bookings', { staff: `s${at % 5}`, at: '10:00' }));
    expect(booked).toEqual([...Array<number>(5).fill(201), ...Array<number>(AT_ONCE - 5).fill(409)]);

    // The membership ends in the middle of it: what is answered counts, and after its end nothing does.
    await call('POST', 'members', { _id: MEMBERSHIP, team: 'a', user: USER });
    await call('POST', 'cards', { _id: CARD, team: 'a' });
    const change = () => call('PATCH', `cards/${CARD}`, { $inc: { n: 1 } }, member);
    expect((await change()).status).toBe(200);
    let ended = false;
    const late: number[] = [];
    const written = atOnce(async (at) => {
      if (at === AT_ONCE / 2) {
        const reply = await call('DELETE', `members/${MEMBERSHIP}`);
        ended = true;
        return reply;
      }
      const isLate = ended;
      const reply = await change();
      if (isLate) late.push(reply.status);
      return reply;
    });
    const statuses = await written;
    for (let again = 0; again < 4; again++) late.push((await change()).status);
    expect(late).toEqual(late.map(() => 404));
    const carriedOut = statuses.filter((status) => status === 200).length;
    expect([...new Set(statuses)].every((status) => status === 200 || status === 404)).toBe(true);
    expect((await call('GET', `cards/${CARD}`)).body.n).toBe(carriedOut);
  });
});

interface Answer {
  status: number;
  body: Record<string, unknown>;
}

/** How many requests are answered before the next process is killed. */
const BETWEEN_KILLS = 25;
const KILLS = 2;
const CLIENTS = 4;
const LIST = 10;

describe.runIf(process.platform === 'linux')(
  'writes while one of two processes is killed',
  { timeout: 240_000 },
  () => {
    it.each([
      ['embedded', false],
      ['MongoDB', true],
    ])('are carried out once, by all who ask again: %s', async (_, isMongodb) => {
      const { database, env } = isMongodb ? await startDatabase(store) : { database: null, env: store };
      if (database) running.push(database);
      // Where none of them listens for a moment, the next would listen on another free one.
      const port = String(await findFreePort());
      const service = await startService(['serve', '--port', port, '--processes', '2'], env);
      running.push(service);
      const { url, pid } = service.ready;
      let answered = 0;
      let isOver = false;

      /** Null where the process that was asked has ended. */
      async function send(method: string, path: string, body?: object, headers = server): Promise<Answer | null> {
        try {
          const reply = await fetch(`${url}/api/data/${path}`, {
            method,
            headers: { ...headers, 'content-type': 'application/json', connection: 'close' },
            ...(body && { body: JSON.stringify(body) }),
          });
          const answer = { status: reply.status, body: (await reply.json()) as Answer['body'] };
          answered++;
          return answer;
        } catch (error) {
          if (error instanceof TypeError || error instanceof SyntaxError) return null;
          throw error;
        }
      }
      let repeated = 0;
      /** Asks again, by the same key, until there is an answer that does not ask for that. */
      async function once(method: string, path: string, body?: object): Promise<Answer> {
        const key = { ...server, 'idempotency-key': new ObjectId().toHexString() };
        for (;;) {
          const answer = await send(method, path, body, key);
          if (!answer) {
            expect(service.process.exitCode ?? service.process.signalCode, 'how the service ended').toBeNull();
            repeated++;
          } else if (answer.body.code !== 'DOCUMENT_CHANGING') return answer;
        }
      }

      const counter = new ObjectId().toHexString();
      await once('POST', 'counters', { _id: counter });
      await once('POST', 'cards', { _id: CARD, team: 'a' });
      const [pushed, booked, slugs] = [new Set<number>(), new Map<string, string>(), new Set<string>()];
      const changed = { sure: 0, perhaps: 0 };
      const odd: unknown[] = [];
      let counted = 0;

      async function work(client: number): Promise<void> {
        for (let at = 0; !isOver; at++) {
          const added = await once('PATCH', `counters/${counter}`, { $inc: { n: 1 } });
          if (added.status === 200) counted++;
          else odd.push(added);
          const item = client * 1_000_000 + at;
          const push = await once('PATCH', `counters/${counter}`, { $push: { list: item } });
          if (push.status === 200) pushed.add(item);
          else if (push.status !== 400) odd.push(push);
          const pair = `${at % 5} ${Math.floor(at / 2)}`;
          const booking = await once('POST', 'bookings', { staff: `${at % 5}`, at: `${Math.floor(at / 2)}` });
          if (booking.status === 201) booked.set(pair, String(booking.body._id));
          else if (booking.body.code !== 'DUPLICATE_VALUE') odd.push(booking);
          const slug = `page ${at}`;
          const page = await once('POST', 'pages?upsert=slug', { slug, by: `${client}` });
          if (page.status === 201 || page.status === 200) slugs.add(slug);
          else odd.push(page);
        }
      }

      /** A membership comes and goes: what begins after its end is refused. */
      async function comeAndGo(): Promise<void> {
        const change = async (): Promise<number | null> => {
          const answer = await send('PATCH', `cards/${CARD}`, { $inc: { n: 1 } }, member);
          if (!answer) changed.perhaps++;
          if (answer?.status === 200) changed.sure++;
          return answer?.status ?? null;
        };
        while (!isOver) {
          const membership = new ObjectId().toHexString();
          await once('POST', 'members', { _id: membership, team: 'a', user: USER });
          const during = Promise.all([change(), change(), change()]);
          await once('DELETE', `members/${membership}?permanent=true`);
          const after = await Promise.all([change(), change()]);
          odd.push(...after.filter((status) => status !== null && status !== 404));
          odd.push(...(await during).filter((status) => status !== null && status !== 200 && status !== 404));
        }
      }

      const all = [...Array.from({ length: CLIENTS }, (__, client) => work(client)), comeAndGo()];
      const ended = Promise.all(all).then(() => undefined);
      try {
        // Some request has to have been under way there.
        for (let kill = 0; kill < KILLS || repeated === 0; kill++) {
          const enough = answered + BETWEEN_KILLS;
          await Promise.race([eventually('requests are answered', () => answered > enough, 60_000), ended]);
          await eventually('there are two processes', () => childrenOf(pid).length === 2, 60_000);
          process.kill(childrenOf(pid)[kill % 2]!, 'SIGKILL');
        }
      } finally {
        isOver = true;
      }
      await ended;
      expect(odd).toEqual([]);
      const get = async (path: string): Promise<Answer['body']> => (await once('GET', path)).body;
      const { n, list } = await get(`counters/${counter}`);
      expect(n).toBe(counted);
      expect((list as number[]).toSorted()).toEqual([...pushed].toSorted());
      expect(pushed.size).toBeLessThanOrEqual(LIST);
      const items = async (name: string) =>
        ((await get(`${name}?limit=100`)).data as { items: Answer['body'][] }).items;
      const total = async (name: string) => ((await get(`${name}?limit=1`)).data as { total: number }).total;
      expect(await total('bookings')).toBe(booked.size);
      for (const { _id, staff, at } of await items('bookings')) {
        expect(_id).toBe(booked.get(`${String(staff)} ${String(at)}`));
      }
      expect(await total('pages')).toBe(slugs.size);
      const { n: changes } = await get(`cards/${CARD}`);
      expect(changes).toBeGreaterThanOrEqual(changed.sure);
      expect(changes).toBeLessThanOrEqual(changed.sure + changed.perhaps);
    });
  },
);
