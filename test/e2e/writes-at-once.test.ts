import { ObjectId } from 'bson';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { migrate } from '../world/app.js';
import { defaultUsersCollection, documentsName, parseFieldSpec } from '../world/collections.js';
import { signAccessToken } from '../world/users.js';
import { buildCollection, buildProject } from '../helpers/build-project.js';
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
