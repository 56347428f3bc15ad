import request from 'supertest';
import { describe, expect, it } from 'vitest';
import { parseFieldSpec, requireCollection } from '../world/collections.js';
import { explainAccess } from '../world/documents.js';
import { buildCollection, buildProject } from '../helpers/build-project.js';
import { openStreamClient } from '../helpers/event-stream.js';
import { useTestApp } from '../helpers/use.js';
import { bearer, openUserClient, PASSWORD } from '../helpers/user-client.js';

// Anybody can sign up with anybody's address: to rules it is known when its owner has proven it.

const VICTIM = 'boss@corp.example';
const MINE = 'doc.assignee = user.email';

let headers: Record<string, string>;
const ids: Record<string, string> = {};

const call = (method: 'get' | 'post' | 'patch' | 'delete', path: string, body?: object) => {
  const sent = request(test.server)[method](`/api/${path}`).set(headers);
  return body === undefined ? sent : sent.send(body);
};

const test = await useTestApp({ settings: { BSVC_BCRYPT_COST: '4' } });
const owner = await buildProject(test.app);
const users = openUserClient(test, owner.publishable);
const fields = (specs: string[]) => specs.map(parseFieldSpec);
const build = (name: string, specs: string[], rule: string) =>
  buildCollection(test.app, owner.project, {
    name,
    fields: fields(specs),
    rules: { read: rule, create: rule, update: rule, delete: rule },
    changes: { on: true },
  });
await build('tasks', ['assignee:String', 'title:String'], MINE);
await build('invites', ['email:String', 'user:String', 'board:String'], 'nobody');
await build('boards', ['name:String'], 'doc.name in invites[user = user.id and email = user.email].board');
await build('notes', ['assignee:String', `secret:String@read(user.email = "${VICTIM}")@write(${MINE})`], 'anyone');
await build('refs', ['task:Ref(tasks)'], 'anyone');
const reply = await users.post('/signup', { email: VICTIM, password: PASSWORD });
const user = (reply.body as { user: { _id: string } }).user;
headers = {
  'x-api-key': owner.publishable,
  ...bearer((reply.body as { accessToken: string }).accessToken),
};
const store = async (collection: string, body: object): Promise<string> => {
  const stored = await request(test.server)
    .post(`/api/data/${collection}`)
    .set({ 'x-api-key': owner.secret })
    .send(body)
    .expect(201);
  return (stored.body as { _id: string })._id;
};
const id = await store('tasks', { assignee: VICTIM, title: 'secret plan' });
ids.board = await store('boards', { name: 'b' });
await store('invites', { email: VICTIM, user: user._id, board: 'b' });
ids.note = await store('notes', { assignee: VICTIM, secret: 'secret plan' });
ids.ref = await store('refs', { task: id });

/** What each way comes to for the user, as true where the address admits it. */
const WAYS: Record<string, () => Promise<boolean>> = {
  list: async () => (await call('get', 'data/tasks')).text.includes('secret plan'),
  count: async () => (await call('get', 'data/tasks?count=true')).text.includes('"count":1'),
  get: async () => (await call('get', `data/tasks/${id}`)).status === 200,
  pipeline: async () =>
    (await call('post', 'data/tasks/aggregate', { pipeline: [{ $limit: 9 }] })).text.includes('plan'),
  join: async () => {
    const lookup = { from: 'tasks', pipeline: [], as: 'found' };
    return (await call('post', 'data/refs/aggregate', { pipeline: [{ $lookup: lookup }] })).text.includes('plan');
  },
  populate: async () => (await call('get', `data/refs/${ids.ref}?populate=task`)).text.includes('plan'),
  feed: async () => {
    await test.app.backgroundTasks.idle();
    return (await call('get', 'data/tasks/changes')).text.includes('plan');
  },
  stream: async () => {
    const client = await openStreamClient(test, { headers, body: { subscriptions: [{ collection: 'tasks' }] } });
    await client.until(({ event }) => event === 'ready');
    client.close();
    return client.known().size > 0;
  },
  'a set': async () => (await call('get', `data/boards/${ids.board}`)).status === 200,
  'a field': async () => (await call('get', `data/notes/${ids.note}`)).text.includes('plan'),
  'a pinned list': async () => (await call('get', `data/tasks?assignee=${VICTIM}`)).text.includes('plan'),
  update: async () => (await call('patch', `data/tasks/${id}`, { title: 'secret plan' })).status === 200,
  'a field of an update': async () =>
    (await call('patch', `data/notes/${ids.note}`, { secret: 'secret plan' })).status === 200,
  create: async () => (await call('post', 'data/tasks', { assignee: VICTIM, title: 'mine' })).status === 201,
  bulk: async () => (await call('post', 'data/tasks/bulk', [{ assignee: VICTIM, title: 'mine' }])).status === 201,
  batch: async () => {
    const operations = [{ op: 'update', collection: 'tasks', id, body: { title: 'secret plan' } }];
    return (await call('post', 'batch', { operations })).status === 200;
  },
  upload: async () => {
    const attach = JSON.stringify({ collection: 'tasks', id });
    const sent = request(test.server).post('/api/storage/upload').set(headers).field('attach', attach);
    return (await sent.attach('file', Buffer.from('x'), 'a.txt')).status === 201;
  },
  explanation: async () => {
    const { app } = test;
    const tasks = await requireCollection(app, owner.project._id, 'tasks');
    const explained = await explainAccess(app, owner.project, tasks, { as: user._id }, new AbortController().signal);
    return JSON.stringify(explained).includes(VICTIM);
  },
  'remove and recover': async () => {
    const removed = (await call('delete', `data/tasks/${id}`)).status === 200;
    const back = (await call('patch', `data/tasks/${id}/recover`)).status === 200;
    return removed && back;
  },
};

describe('user.email', () => {
  const all = Object.entries(WAYS);

  it('admits nobody until the address is proven, and its owner then', async () => {
    const admitted = async (): Promise<Record<string, boolean>> => {
      const found: Record<string, boolean> = {};
      for (const [name, way] of all) found[name] = await way();
      return found;
    };
    const of = (value: boolean): Record<string, boolean> => Object.fromEntries(all.map(([name]) => [name, value]));
    expect(await admitted()).toEqual(of(false));
    await request(test.server)
      .patch(`/api/userAuth/users/${user._id}`)
      .set({ 'x-api-key': owner.secret })
      .send({ emailVerified: true })
      .expect(200);
    const again = await users.logIn(VICTIM);
    headers = { ...headers, ...bearer((again.body as { accessToken: string }).accessToken) };
    expect(await admitted()).toEqual(of(true));
  });
});
