import { ObjectId } from 'bson';
import supertest from 'supertest';
import { describe, expect, it } from 'vitest';
import { ROUTE_LISTS } from '../world/app.js';
import { signAccessToken } from '../world/users.js';
import { buildCollection, buildProject } from '../helpers/build-project.js';
import { buildOperator } from '../helpers/operator-client.js';
import { useTestApp } from '../helpers/use.js';

/** The service's clock stands still until a test moves it. */
let nowMs = Date.parse('2026-11-22T10:00:00.000Z');

const test = await useTestApp({ clock: { now: () => nowMs } });
const owner = await buildProject(test.app);
await buildCollection(test.app, owner.project, {
  name: 'notes',
  mode: 'flexible',
  rls: { mode: 'public-read', ownerField: 'userId' },
});

type Method = 'get' | 'post' | 'put' | 'patch' | 'delete';

async function send(method: Method, path: string, { body, match }: { body?: object; match?: string } = {}) {
  const request = supertest(test.server)[method](`/api/data/notes${path}`).set('x-api-key', owner.secret);
  if (match !== undefined) request.set('If-Match', match);
  const response = await (body === undefined ? request : request.send(body));
  const answer = response.body as { _id: string; code?: string; n?: number };
  return { said: [response.status, answer.code].filter(Boolean).join(' '), tag: response.get('ETag'), answer };
}

async function insert(): Promise<{ id: string; tag: string }> {
  const { answer, tag } = await send('post', '', { body: { n: 0 } });
  return { id: answer._id, tag: tag! };
}

describe('the ETag of a document', () => {
  it('is its updatedAt in quotes, wherever a document is answered', async () => {
    const { id, tag } = await insert();
    expect(tag).toBe('"2026-11-22T10:00:00.000Z"');
    expect((await send('get', `/${id}`)).tag).toBe(tag);
    nowMs += 5;
    const changed = await send('patch', `/${id}`, { body: { n: 1 } });
    expect(changed.tag).toBe('"2026-11-22T10:00:00.005Z"');
    nowMs += 5;
    await send('delete', `/${id}`);
    nowMs += 5;
    expect((await send('patch', `/${id}/recover`)).tag).toBe(`"${new Date(nowMs).toISOString()}"`);
  });

  it('is another one after every write of the document, also within one millisecond', async () => {
    const { id, tag } = await insert();
    const tags = [tag];
    const read = async (): Promise<void> => void tags.push((await send('get', `/${id}?include_deleted=true`)).tag!);
    const batch = (operation: object): Promise<unknown> =>
      supertest(test.server)
        .post('/api/batch')
        .set('x-api-key', owner.secret)
        .send({ operations: [{ collection: 'notes', id, ...operation }] })
        .expect(200);
    const writes: (() => Promise<unknown>)[] = [
      () => send('patch', `/${id}`, { body: { n: 1 } }),
      () => send('put', `/${id}`, { body: { n: 2 } }),
      () => send('patch', `/${id}`, { body: { $inc: { n: 1 } } }),
      () => send('patch', `?n=3&confirm=1`, { body: { n: 5 } }),
      () => send('delete', `/${id}`),
      () => send('patch', `/${id}/recover`),
      () => batch({ op: 'update', body: { n: 4 } }),
      () => batch({ op: 'remove' }),
      () => batch({ op: 'recover' }),
    ];
    for (const write of writes) {
      await write();
      await read();
    }
    expect(new Set(tags).size).toBe(writes.length + 1);
  });

  it('is left out where updatedAt is not shown', async () => {
    const { id } = await insert();
    expect((await send('get', `/${id}?meta=false`)).tag).toBeUndefined();
    expect((await send('get', `/${id}?fields=n`)).tag).toBeUndefined();
    const { answer } = await send('post', '', { body: { inner: { updatedAt: '2026-11-22T10:00:00.000' } } });
    expect((await send('get', `/${answer._id}?fields=inner&meta=false`)).tag).toBeUndefined();
  });
});

describe('a copy of a document', () => {
  const read = (path: string, copies: string, key = owner.secret) =>
    supertest(test.server).get(`/api/data/${path}`).set({ 'x-api-key': key, 'If-None-Match': copies });

  it('is good as long as the document has not changed: 304 without a body', async () => {
    const { id, tag } = await insert();
    const named = [tag, `W/${tag}`, tag.replace(/"$/, '-gzip"'), `"another", ${tag}`, `, ${tag}`, '*'];
    const queries = ['', '?fields=n,updatedAt', '?include_deleted=true'];
    for (const query of queries) {
      for (const copies of named) {
        const { status, text, headers } = await read(`notes/${id}${query}`, copies);
        const seen = { query, copies, status, text, tag: headers['etag'] as string };
        expect(seen).toEqual({ query, copies, status: 304, text: '', tag });
      }
    }
    for (const other of ['"another"', 'no tag', '']) await read(`notes/${id}`, other).expect(200);
    nowMs += 5;
    await send('patch', `/${id}`, { body: { n: 1 } });
    await read(`notes/${id}`, tag).expect(200);
    await send('delete', `/${id}`);
    await read(`notes/${id}`, '*').expect(404);
  });

  it('is never said to be good where what is shown may change without the document', async () => {
    await buildCollection(test.app, owner.project, {
      name: 'orders',
      fields: [
        { name: 'note', type: 'Ref', ref: 'notes' },
        { name: 'price', type: 'Number', read: '"staff" in user.roles' },
      ],
    });
    const { id: note } = await insert();
    const inserted = await supertest(test.server)
      .post('/api/data/orders')
      .set('x-api-key', owner.secret)
      .send({ note, price: 1 })
      .expect(201);
    const { _id } = inserted.body as { _id: string };
    const tag = inserted.get('ETag')!;
    await read(`orders/${_id}`, tag).expect(304);
    await read(`orders/${_id}?populate=note`, tag).expect(200);
    await read(`orders/${_id}`, tag, owner.publishable).expect(200);
  });
});

describe.each([
  ['PUT', 'put', '', { n: 1 }],
  ['PATCH', 'patch', '', { n: 1 }],
  ['DELETE', 'delete', '', undefined],
  ['DELETE for good', 'delete', '?permanent=true', undefined],
] as const)('If-Match of %s', (_title, method, query, body) => {
  it('lets a write through that is for the stored version', async () => {
    const { id, tag } = await insert();
    expect((await send(method, `/${id}${query}`, { body, match: tag })).said).toBe('200');
  });

  it('refuses one for an earlier version with 412, and changes nothing', async () => {
    const { id, tag } = await insert();
    await send('patch', `/${id}`, { body: { n: 2 }, match: tag });
    expect((await send(method, `/${id}${query}`, { body, match: tag })).said).toBe('412 CHANGED_MEANWHILE');
    expect((await send('get', `/${id}`)).answer.n).toBe(2);
  });

  it('takes * for any version, says 404 for what is not there, and 400 for what is no ETag', async () => {
    const { id, tag } = await insert();
    const none = new ObjectId().toHexString();
    expect((await send(method, `/${none}${query}`, { body, match: tag })).said).toBe('404 DOCUMENT_NOT_FOUND');
    for (const match of ['x', tag.slice(1, -1), `W/x`, '"2026-13-01T00:00:00.000Z"', `${tag} ${tag}`, `${tag}, x`]) {
      expect((await send(method, `/${id}${query}`, { body, match })).said).toBe('400 INVALID_IF_MATCH');
    }
    expect((await send(method, `/${id}${query}`, { body, match: '*' })).said).toBe('200');
  });

  it.each([
    ['made weak by a proxy that compresses', (tag: string) => `W/${tag}`],
    ['with the mark of Apache', (tag: string) => tag.replace(/"$/, '-gzip"')],
    ['among others', (tag: string) => `"2020-01-01T00:00:00.000Z", W/${tag},"2999-01-01T00:00:00.000Z"`],
  ])('takes the ETag %s, and refuses that of an earlier version', async (_name, sent) => {
    const { id, tag } = await insert();
    nowMs += 5;
    await send('patch', `/${id}`, { body: { n: 2 } });
    expect((await send(method, `/${id}${query}`, { body, match: sent(tag) })).said).toBe('412 CHANGED_MEANWHILE');
    const current = (await send('get', `/${id}`)).tag!;
    const written = await send(method, `/${id}${query}`, { body, match: sent(current) });
    expect(written.said).toBe('200');
    if (written.tag !== undefined) expect(written.tag < '"2999').toBe(true);
  });

  it('lets one of many writers through who know the same version, in the same millisecond', async () => {
    const { id, tag } = await insert();
    const all = await Promise.all(
      Array.from({ length: 8 }, () => send(method, `/${id}${query}`, { body, match: tag })),
    );
    expect(all.filter(({ said }) => said === '200')).toHaveLength(1);
    expect(new Set(all.map(({ said }) => said).filter((said) => said !== '200')).size).toBe(1);
  });
});

describe('If-Match of recovering', () => {
  it('lets the trashed version through, once, and refuses an earlier one', async () => {
    const { id, tag } = await insert();
    nowMs += 5;
    await send('delete', `/${id}`);
    const trashed = (await send('get', `/${id}?include_deleted=true`)).tag!;
    expect((await send('patch', `/${id}/recover`, { match: tag })).said).toBe('412 CHANGED_MEANWHILE');
    expect((await send('get', `/${id}`)).said).toBe('404 DOCUMENT_NOT_FOUND');
    const recovered = await send('patch', `/${id}/recover`, { match: trashed });
    expect(recovered.said).toBe('200');
    expect(recovered.tag).not.toBe(trashed);
    expect((await send('patch', `/${id}/recover`, { match: trashed })).said).toBe('404 DOCUMENT_NOT_FOUND');
  });
});

/** Every route with the header, with the example of its body, and the code for a value that is none. */
const TAKERS = ROUTE_LISTS.flatMap(({ routes }) => routes)
  .filter(({ method }) => method !== 'GET')
  .flatMap((route) =>
    [
      ['if-match', 'INVALID_IF_MATCH'],
      ['idempotency-key', 'INVALID_IDEMPOTENCY_KEY'],
    ]
      .filter(([header]) => header! in (route.headers ?? {}))
      .map(([header, code]) => ({ route, header: header!, code: code!, title: `${route.method} ${route.path}` })),
  );

it('every route that changes one document takes If-Match', () => {
  const changing = ROUTE_LISTS.flatMap(({ routes }) => routes)
    .filter(({ method, path }) => method !== 'GET' && /^\/api\/data\/.*:id\b|\/documents\/:document\b/.test(path))
    .map(({ method, path }) => `${method} ${path}`);
  expect(changing.length).toBeGreaterThanOrEqual(7);
  expect(TAKERS.filter(({ header }) => header === 'if-match').map(({ title }) => title)).toEqual(changing);
});

it.each(TAKERS)('$title refuses an empty $header, which is a lost one', async ({ route, header, code }) => {
  const { id } = await insert();
  const path = route.path
    .replace(':projectId', owner.project._id.toHexString())
    .replace(/:collection(Name)?/, 'notes')
    .replace(/:id|:document/, id);
  const { token } = await buildOperator(test);
  const method = route.method.toLowerCase() as Method;
  const request = supertest(test.server)[method](path).set(header, '');
  if (path.startsWith('/api/projects')) request.set('authorization', `Bearer ${token}`);
  else request.set('x-api-key', owner.secret);
  const response = await (route.example === undefined ? request : request.send(route.example as object));
  expect([response.status, (response.body as { code: string }).code]).toEqual([400, code]);
});

it('If-Match tells an end user nothing of another one’s document', async () => {
  const { answer } = await send('post', '', { body: { n: 0, userId: new ObjectId().toHexString() } });
  const token = signAccessToken(test.app, owner.project, new ObjectId().toHexString(), 60_000);
  for (const match of ['"2020-01-01T00:00:00.000Z"', `"${new Date(nowMs).toISOString()}"`]) {
    const response = await supertest(test.server)
      .patch(`/api/data/notes/${answer._id}`)
      .set({ 'x-api-key': owner.publishable, authorization: `Bearer ${token}`, 'If-Match': match })
      .send({ n: 1 });
    expect((response.body as { code: string }).code).toBe('OWNER_MISMATCH');
  }
});
