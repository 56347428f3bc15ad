import { request as openRequest, type ClientRequest } from 'node:http';
import request from 'supertest';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { exportDocuments } from '../../world/documents.js';
import { buildCollection, buildProject, placeDocuments, type TestProject } from '../../helpers/build-project.js';
import { buildOperator } from '../../helpers/operator-client.js';
import { eventually } from '../../helpers/eventually.js';
import { openTestApp, type TestApp } from '../../helpers/open-test-app.js';
import { useTestApp } from '../../helpers/use.js';

const DOCUMENTS = 300;
/** Every document with every other, four levels deep: hours of work that finds nothing, and so fills no memory. */
const ENDLESS = [1, 2, 3, 4]
  .reduce<object[]>(
    (inner) => [
      { $lookup: { from: 'posts', let: { outer: '$views' }, pipeline: inner, as: 'found' } },
      { $match: { $expr: { $and: [{ $ne: ['$found', []] }, { $ne: ['$views', '$$outer'] }] } } },
    ],
    [{ $match: { $expr: { $eq: ['$title', '$$outer'] } } }],
  )
  .slice(0, 1);
/** Much work for each document; between two of them a read ends when it is to. */
const LONG = {
  $gt: [
    { $reduce: { input: { $range: [0, 400_000] }, initialValue: 0, in: { $add: ['$$value', '$$this', '$views'] } } },
    -1,
  ],
};

// The threads belong to the embedded engine; behind the driver it is the server's affair where a read runs.
const PLACES = process.env.BSVC_TEST_TRANSPORT === 'wire' ? [0] : [0, 1];

describe.each(PLACES)('aggregation whose client leaves (reader threads: %s)', (readerThreads) => {
  let test: TestApp;
  let shop: TestProject;

  beforeAll(async () => {
    test = await openTestApp({ settings: { BSVC_QUERY_TIMEOUT: '1h' }, constants: { readerThreads } });
    shop = await buildProject(test.app);
    const posts = await buildCollection(test.app, shop.project, {
      name: 'posts',
      fields: [
        { name: 'title', type: 'String' },
        { name: 'views', type: 'Number' },
      ],
    });
    const documents = Array.from({ length: DOCUMENTS }, (_, views) => ({ title: `post ${views}`, views }));
    await placeDocuments(test.app, posts, documents);
  });
  afterAll(() => test.close());

  /** A client that waits for no answer. */
  function startAggregation(pipeline: object[]): ClientRequest {
    const client = openRequest(`${test.url}/api/data/posts/aggregate`, {
      method: 'POST',
      agent: false,
      headers: { 'content-type': 'application/json', 'x-api-key': shop.publishable },
    });
    client.on('error', () => undefined);
    client.end(JSON.stringify({ pipeline }));
    return client;
  }

  it('gives its turn to others, running or waiting, and counts as 499', async () => {
    const turns = vi.spyOn(test.app.aggregations, 'run');
    // Some run, as many as an address may have at once; the others wait.
    const clients = [1, 2, 3, 4].map(() => startAggregation(ENDLESS));
    await eventually('all four are asked for', () => turns.mock.calls.length === 4);
    const next = request(test.server)
      .post('/api/data/posts/aggregate')
      .set('x-api-key', shop.publishable)
      .send({ pipeline: [{ $count: 'posts' }] });
    const answer = next.then((reply) => reply);
    await eventually('the fifth is asked for', () => turns.mock.calls.length === 5);
    for (const client of clients) client.destroy();
    expect((await answer).body).toMatchObject({ success: true, data: [{ posts: DOCUMENTS }] });
    const statuses = (): string[] =>
      test.logLines.flatMap((line) => (line.includes('/posts/aggregate') ? [/"status":(\d+)/.exec(line)![1]!] : []));
    await eventually('all are logged', () => statuses().length === 5);
    expect(statuses().sort()).toEqual(['200', '499', '499', '499', '499']);
    expect(test.logLines.filter((line) => line.includes('request failed'))).toEqual([]);
    turns.mockRestore();
  });
});

describe('a plan that is explained, and whose client leaves', () => {
  it('gives its turn to others, running or waiting', async () => {
    const test = await useTestApp({ settings: { BSVC_QUERY_TIMEOUT: '1h' } });
    const shop = await buildProject(test.app);
    const posts = await buildCollection(test.app, shop.project, { name: 'posts', mode: 'flexible' });
    await placeDocuments(
      test.app,
      posts,
      Array.from({ length: DOCUMENTS }, (_, views) => ({ views })),
    );
    const { token, call } = await buildOperator(test);
    const path = `/api/projects/${shop.project._id.toHexString()}/collections/posts/documents/explain`;
    const turns = vi.spyOn(test.app.aggregations, 'run');
    const leaving = [1, 2, 3, 4].map(() => {
      const headers = { 'content-type': 'application/json', authorization: `Bearer ${token}` };
      const client = openRequest(test.url + path, { method: 'POST', agent: false, headers });
      client.on('error', () => undefined);
      client.end(JSON.stringify({ pipeline: [{ $match: { $expr: LONG } }] }));
      return client;
    });
    await eventually('all four are asked for', () => turns.mock.calls.length === 4);
    const explained = call('post', path, { pipeline: [{ $match: { views: { $gte: 0 } } }] }).then((reply) => reply);
    await eventually('the fifth is asked for', () => turns.mock.calls.length === 5);
    for (const client of leaving) client.destroy();
    expect((await explained).body).toMatchObject({ data: { examined: DOCUMENTS, returned: DOCUMENTS } });
    const ended = await Promise.allSettled(turns.mock.results.map(({ value }) => value as Promise<unknown>));
    expect(ended.map(({ status }) => status)).toEqual([...Array<string>(4).fill('rejected'), 'fulfilled']);
    turns.mockRestore();
  });
});

describe('an export whose client leaves', () => {
  it('reads no further than the batch that is under way', async () => {
    const test = await useTestApp();
    const { project } = await buildProject(test.app);
    const notes = await buildCollection(test.app, project, { name: 'notes' });
    const documents = Array.from({ length: 1200 }, (_, n) => ({ n }));
    await placeDocuments(test.app, notes, documents);
    const client = new AbortController();
    let read = 0;
    const reading = async (): Promise<void> => {
      const options = { includeDeleted: false, signal: client.signal };
      for await (const _document of exportDocuments(test.app, notes, options)) if (++read === 1) client.abort();
    };
    await expect(reading()).rejects.toThrow();
    expect(read).toBeLessThanOrEqual(500);
  });
});

describe('who leaves while passwords are worked on', () => {
  let test: TestApp;
  let shop: TestProject;

  beforeAll(async () => {
    test = await openTestApp({ settings: { BSVC_BCRYPT_COST: '4' } });
    shop = await buildProject(test.app);
  });
  afterAll(() => test.close());

  it.each(['/api/userAuth/login', '/api/userAuth/signup', '/api/admin/login'])(
    'gives its place in the queue to others: POST %s',
    async (path) => {
      const { passwords } = test.app;
      const inTurn = passwords.inTurn.bind(passwords);
      let finish = (): void => undefined;
      const finished = new Promise<void>((resolve) => (finish = resolve));
      // More than run at once on any machine.
      const before = [1, 2, 3].map(() => inTurn('others', () => finished));
      let begun = 0;
      const spy = vi.spyOn(passwords, 'inTurn').mockImplementation((tenant, work, gone) =>
        inTurn(
          tenant,
          (bcrypt) => {
            begun++;
            return work(bcrypt);
          },
          gone,
        ),
      );
      test.logLines.length = 0;
      const client = openRequest(`${test.url}${path}`, {
        method: 'POST',
        agent: false,
        headers: { 'content-type': 'application/json', 'x-api-key': shop.publishable },
      });
      client.on('error', () => undefined);
      client.end(JSON.stringify({ email: 'ann@example.test', password: 'correct horse' }));
      await eventually('it waits for its turn', () => spy.mock.calls.length === 1);
      client.destroy();
      await eventually('it is logged', () => test.logLines.some((line) => line.includes('"status":499')));
      finish();
      await Promise.all(before);
      await passwords.inTurn('after it', () => Promise.resolve());
      expect(begun).toBe(1);
      spy.mockRestore();
    },
  );
});
