import { ObjectId } from 'bson';
import request from 'supertest';
import { describe, expect, it } from 'vitest';
import { defaultUsersCollection } from '../../world/collections.js';
import { addWebhook } from '../../world/projects.js';
import { deliveryStore, fileStore } from '../../world/stored.js';
import { buildCollection, buildProject, placeDocuments, storedDocuments } from '../../helpers/build-project.js';
import { buildOperator } from '../../helpers/operator-client.js';
import { useTestApp } from '../../helpers/use.js';

const test = await useTestApp();
const project = await buildProject(test.app);
const collection = await buildCollection(test.app, project.project, { name: 'many' });
for (let batch = 0; batch < 20; batch++) {
  const documents = Array.from({ length: 1000 }, (_, n) => ({ text: `${'a'.repeat(40)}${batch * 1000 + n}!`, n }));
  await placeDocuments(test.app, collection, documents);
}

const get = (path: string) => request(test.server).get(path).set('x-api-key', project.publishable);
const aggregate = (pipeline: unknown) =>
  request(test.server).post('/api/data/many/aggregate').set('x-api-key', project.publishable).send({ pipeline });

/** Sends the request, then a health check; tells which of them was answered first. */
async function race(slow: PromiseLike<{ status: number }>): Promise<{ first: string; status: number }> {
  const order: string[] = [];
  const [{ status }] = await Promise.all([
    Promise.resolve(slow).then((reply) => (order.push('slow'), reply)),
    request(test.server)
      .get('/api/health/live')
      .then(() => order.push('health')),
  ]);
  return { first: order[0]!, status };
}

describe('hostile reads', () => {
  it.each([
    '$where=sleep(1000)',
    'a[$ne]=1',
    'a[$gt]=',
    '__proto__[x]=1',
    'constructor=1',
    'sort=$where',
    'sort=-__proto__',
    'limit=-5',
    'limit=1e9',
    'page=1e9',
    'page=NaN',
    'cursor=eyJhIjoxfQ.AAAA',
    'fields=$where',
    'populate=__proto__',
    'text_regex=(a%2B)%2B$',
    'text_regex=(a|a)*$',
    'text_regex=^(([a-z])%2B.)%2B[A-Z]([a-z])%2B$',
    `text_regex=${'a?'.repeat(60)}`,
    `text_regex=${'a'.repeat(129)}`,
    'isDeleted=true',
    'isDeleted[$ne]=x',
    '_bsvc_exists=true',
    `${'a.'.repeat(50)}b=1`,
    'a=%00',
    'a=%',
  ])('answers ?%s with 400', async (query) => {
    const { body, status } = await get(`/api/data/many?${query}`);
    expect([status, body.success, body.data]).toEqual([400, false, {}]);
    expect(body.code).toMatch(/^INVALID_(QUERY|CURSOR)$/);
  });

  it.each<[string, unknown, string]>([
    [
      '$lookup into users',
      [{ $lookup: { from: 'users', localField: 'a', foreignField: 'b', as: 'c' } }],
      'USERS_BLOCKED',
    ],
    ['$function inside $facet', [{ $facet: { x: [{ $project: { a: { $function: {} } } }] } }], 'BLOCKED_STAGE'],
    ['$where inside $match', [{ $match: { $or: [{ $where: 'while(1);' }] } }], 'BLOCKED_STAGE'],
    ['$out', [{ $out: 'many' }], 'BLOCKED_STAGE'],
    ['a catastrophic pattern', [{ $match: { text: { $regex: '(a|aa)+$' } } }], 'INVALID_PIPELINE'],
    ['a thousand stages', Array.from({ length: 1000 }, () => ({ $match: {} })), 'INVALID_PIPELINE'],
  ])('answers a pipeline with %s with 400', async (_, pipeline, code) => {
    const { body, status } = await aggregate(pipeline);
    expect([status, body.code]).toEqual([400, code]);
  });

  it('serves others while a pattern is matched with every document', async () => {
    const { first, status } = await race(get('/api/data/many?text_regex=a.*b.*c&limit=1'));
    expect({ first, status }).toEqual({ first: 'health', status: 200 });
  });

  it('serves others while every document is sorted', async () => {
    const { first, status } = await race(get('/api/data/many?sort=text&cursor=start'));
    expect({ first, status }).toEqual({ first: 'health', status: 200 });
  });

  it('serves others while every document is grouped', async () => {
    const { first, status } = await race(
      aggregate([{ $group: { _id: '$n', all: { $max: '$text' } } }, { $count: 'n' }]),
    );
    expect({ first, status }).toEqual({ first: 'health', status: 200 });
  });

  it('serves others while documents are joined with each other', async () => {
    const everything = { $lookup: { from: 'many', localField: 'n', foreignField: 'n', as: 'same' } };
    const { first, status } = await race(
      aggregate([{ $limit: 300 }, everything, { $project: { n: { $size: '$same' } } }]),
    );
    expect({ first, status }).toEqual({ first: 'health', status: 200 });
  });
});

describe('a read that would take too long', () => {
  it('ends with 400 and advice', async () => {
    const hasty = await useTestApp({ settings: { BSVC_QUERY_TIMEOUT: '1ms' } });
    const { project: own, publishable } = await buildProject(hasty.app);
    const collection = await buildCollection(hasty.app, own, { name: 'many' });
    const documents = Array.from({ length: 20_000 }, (_, n) => ({ n }));
    await placeDocuments(hasty.app, collection, documents);
    const list = await request(hasty.server).get('/api/data/many?sort=n').set('x-api-key', publishable).expect(400);
    expect(list.body).toMatchObject({ code: 'QUERY_TIMEOUT', message: expect.stringContaining('narrow the filter') });
    const pipeline = [{ $group: { _id: '$n' } }, { $limit: 1 }];
    const grouped = await request(hasty.server)
      .post('/api/data/many/aggregate')
      .set('x-api-key', publishable)
      .send({ pipeline })
      .expect(400);
    expect(grouped.body).toMatchObject({ code: 'QUERY_TIMEOUT', message: expect.stringContaining('$match first') });
    // What operators search or count is bounded as well: it lies in collections of its own.
    const { call } = await buildOperator(hasty);
    const path = `/api/projects/${own._id.toHexString()}`;
    const rows = Array.from({ length: 20_000 }, (_, n) => ({ _id: new ObjectId(), n, isDeleted: false }));
    const users = rows.map((row) => ({ ...row, email: `${row.n}@b.test`, createdAt: new Date() }));
    await storedDocuments(hasty.app, defaultUsersCollection(own._id)).insertMany(users as never);
    const files = rows.map((row) => ({
      ...row,
      projectId: own._id,
      state: 'confirmed',
      name: `${row.n}`,
      path: `${row.n}`,
    }));
    await fileStore(hasty.app).insertMany(files as never);
    const url = 'https://hooks.example/';
    const { webhook } = await addWebhook(hasty.app, own, { url, events: ['*'] });
    const sent = rows.map(({ _id }) => ({ _id: _id.toHexString(), webhookId: webhook.id, createdAt: new Date() }));
    await deliveryStore(hasty.app).insertMany(sent as never);
    const counts = `webhooks/${webhook.id.toHexString()}/counts`;
    const searches = ['users?q=nobody', 'files?name=nothing', counts].map((search) => `${path}/${search}`);
    for (const search of searches)
      expect((await call('get', search).expect(400)).body).toMatchObject({ code: 'QUERY_TIMEOUT' });
  });
});
