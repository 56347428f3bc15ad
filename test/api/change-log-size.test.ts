import request from 'supertest';
import { describe, expect, it } from 'vitest';
import { setChanges } from '../world/collections.js';
import { trimChangesJob } from '../world/jobs.js';
import { projectStore } from '../world/stored.js';
import { buildCollection, buildProject, type TestProject } from '../helpers/build-project.js';
import { eventually } from '../helpers/eventually.js';
import { openFollower } from '../helpers/feed-follower.js';
import { buildOperator } from '../helpers/operator-client.js';
import { useTestApp } from '../helpers/use.js';

const MAX = 6_000;

let shop: TestProject;

const test = await useTestApp({ constants: { changesMaxBytes: MAX } });

const build = async (limits: { database?: number }): Promise<void> => {
  shop = await buildProject(test.app);
  await projectStore(test.app).updateOne({ _id: shop.project._id }, { $set: { limits } });
  await buildCollection(test.app, shop.project, { name: 'items' });
  // An embedded store begins a log when it is first asked for; said to be on, it begins at once.
  if (test.app.db.kind === 'mongodb') await setChanges(test.app, shop.project._id, 'items', { on: true });
};

const send = (method: 'get' | 'post' | 'patch', path: string, body?: object): request.Test =>
  request(test.server)[method](`/api/data/${path}`).set('x-api-key', shop.secret).send(body);

interface Log {
  bytes: number;
  maxBytes: number;
  since: string | null;
}

async function findLog(): Promise<Log | null> {
  const { call } = await buildOperator(test);
  const reply = await call('get', `/api/projects/${shop.project._id.toHexString()}/collections/items`).expect(200);
  return (reply.body as { data: { log: Log | null } }).data.log;
}

async function writeUntil(isEnough: (log: Log) => boolean): Promise<Log> {
  const { _id } = (await send('post', 'items', { n: 0, text: 'x'.repeat(300) }).expect(201)).body as { _id: string };
  for (let n = 1; n < 5_000; n += 25) {
    // Small ones, of which the quota lets many in before it is measured again.
    await Promise.all(Array.from({ length: 25 }, (_, at) => send('patch', `items/${_id}`, { n: n + at })));
    const log = await findLog();
    if (log && isEnough(log)) return log;
  }
  throw new Error('the log never became so large');
}

const trim = async (): Promise<void> => {
  const context = { signal: new AbortController().signal, stopping: new AbortController().signal };
  await trimChangesJob.run(test.app, {}, context as never);
};

describe('the size of a log of changes', () => {
  it('is none before somebody asks, then bounded: the oldest go, and who was away is told', async () => {
    await build({});
    await send('post', 'items', { n: -1 }).expect(201);
    if (test.app.db.kind === 'embedded') expect(await findLog()).toBeNull();
    const behind = openFollower(test, 'items', { 'x-api-key': shop.secret });
    await behind.catchUp();
    const grown = await writeUntil(({ bytes }) => bytes > 2 * MAX);
    await eventually('the trim is through', async () => {
      await trim();
      return (await findLog())!.bytes <= MAX;
    });
    const left = (await findLog())!;
    expect(left).toMatchObject({ maxBytes: MAX });
    expect(left.bytes).toBeGreaterThan(MAX / 2);
    expect(Date.parse(left.since!)).toBeGreaterThan(Date.parse(grown.since!));
    expect((await send('get', `items/changes?since=${encodeURIComponent(behind.cursor!)}`)).status).toBe(410);
    await behind.catchUp();
    expect(behind.restarts).toBe(1);
    expect(behind.known).toEqual(await behind.list());
  });

  it('takes at most a quarter of what a plan grants, and counts in the quota', async () => {
    await build({ database: 2 * MAX });
    await send('get', 'items/changes?since=now').expect(200);
    const { call } = await buildOperator(test);
    const grown = await writeUntil(({ bytes }) => bytes > MAX / 2);
    expect(grown.maxBytes).toBeLessThanOrEqual(MAX / 2);
    // 10.2 of 12 kB: there would be room for it without the log.
    const large = { text: 'x'.repeat(1.7 * MAX) };
    await eventually('the log counts', async () => (await send('post', 'items', large)).status === 403);
    await trim();
    const left = (await findLog())!;
    expect(left.bytes).toBeLessThanOrEqual(MAX / 2);
    const usage = await call('get', `/api/projects/${shop.project._id.toHexString()}/usage`).expect(200);
    const { collections } = (usage.body as { data: { collections: { name: string; log: Log | null }[] } }).data;
    expect(collections.find(({ name }) => name === 'items')!.log!.bytes).toBe(left.bytes);
  });
});
